//! The syntax tree of a template.

use std::collections::HashMap;
use std::rc::Rc;

use crate::value::Value;

pub(super) type Name = Rc<str>;

/// An expression, and the line that errors in it name.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) line: u32,
    pub(super) kind: ExprKind,
}

#[derive(Debug)]
pub(super) enum ExprKind {
    Const(Value),
    Name(Name),
    Text(Vec<Expr>),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Attribute(Box<Expr>, Name),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<[Option<Expr>; 3]>),
    Call(Box<Expr>, Args),
    Filter(Option<Box<Expr>>, Name, Args),
    Test(Box<Expr>, Name, Args),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    If(Box<(Expr, Expr, Option<Expr>)>),
}

/// The arguments of a call.
#[derive(Debug, Default)]
pub(super) struct Args {
    pub(super) positional: Vec<Expr>,
    pub(super) keyword: Vec<(Name, Expr)>,
    pub(super) star: Option<Box<Expr>>,
    pub(super) stars: Option<Box<Expr>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}

/// What is assigned to.
#[derive(Debug)]
pub(super) enum Target {
    Name(Name),
    Tuple(Vec<Target>),
    /// `ns.attribute`
    Namespace(Name, Name),
}

#[derive(Debug)]
pub(super) struct Stmt {
    pub(super) line: u32,
    pub(super) kind: StmtKind,
}

#[derive(Debug)]
pub(super) enum StmtKind {
    Data(String),
    Print(Expr),
    For(Rc<For>),
    /// Conditions with bodies, and what else.
    If(Vec<(u32, Expr, Vec<Stmt>)>, Vec<Stmt>),
    Set(Target, Expr),
    SetBlock(Target, Option<Expr>, Vec<Stmt>),
    With(Vec<(Target, Expr)>, Vec<Stmt>),
    Macro(Rc<MacroDef>),
    CallBlock(Rc<MacroDef>, Expr),
    FilterBlock(Expr, Vec<Stmt>),
    Block(Rc<BlockDef>),
    Extends(Expr),
    Include {
        template: Expr,
        ignore_missing: bool,
        context: bool,
    },
    Import {
        template: Expr,
        target: Name,
        context: bool,
        load: Option<Name>,
    },
    FromImport {
        template: Expr,
        names: Vec<(Name, Name)>,
        context: bool,
    },
    Do(Expr),
    Load(Name, Target, Rc<MacroDef>),
    Scope(Vec<Stmt>),
    Inline(Vec<Stmt>),
    Break,
    Continue,
}

#[derive(Debug)]
pub(super) struct For {
    pub(super) target: Target,
    pub(super) items: Expr,
    pub(super) condition: Option<Expr>,
    pub(super) recursive: bool,
    pub(super) body: Vec<Stmt>,
    pub(super) otherwise: Vec<Stmt>,
}

#[derive(Debug)]
pub(super) struct MacroDef {
    /// None for the body of a call block.
    pub(super) name: Option<Name>,
    pub(super) params: Vec<(Name, Option<Expr>)>,
    pub(super) body: Vec<Stmt>,
    pub(super) catch_varargs: bool,
    pub(super) catch_kwargs: bool,
    pub(super) takes_caller: bool,
}

#[derive(Debug)]
pub(super) struct BlockDef {
    pub(super) name: Name,
    pub(super) body: Vec<Stmt>,
    pub(super) scoped: bool,
    pub(super) required: bool,
}

/// A parsed template.
#[derive(Debug)]
pub(super) struct Template {
    /// Where it is, for messages; None for the one that was given to be rendered.
    pub(super) file: Option<Name>,
    /// What other templates call it; None for the one that was given to be rendered.
    pub(super) name: Option<Name>,
    pub(super) source: String,
    /// About the bytes that it takes.
    pub(super) size: usize,
    pub(super) body: Vec<Stmt>,
    pub(super) blocks: HashMap<Name, Rc<BlockDef>>,
}
