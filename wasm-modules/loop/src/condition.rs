//! Expressions of Python over `m_ret`: those that only look at a value. Any other is refused, since there is no Python here.

use brine_guest::Value;

use crate::compare::{Comparator, contains, kind};

/// Upper bound on nested expressions, because parsing recurses.
const MAX_DEPTH: usize = 64;
/// Upper bound on the bytes of a condition.
const MAX_LENGTH: usize = 4096;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Literal(Value),
    Sign(&'static str),
}

/// The signs, the longer ones first.
const SIGNS: [&str; 18] =
    ["==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", "{", "}", ",", ".", ":", "-", "+", "%"];

/// A condition that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition(Expression);

#[derive(Debug, Clone, PartialEq)]
enum Expression {
    Answer,
    Literal(Value),
    List(Vec<Expression>),
    Dict(Vec<(Expression, Expression)>),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    /// A chain of comparisons, as in `1 < m_ret <= 5`.
    Compare(Box<Expression>, Vec<(Relation, Expression)>),
    Item(Box<Expression>, Box<Expression>),
    Call(String, Vec<Expression>),
    Method(Box<Expression>, String, Vec<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Relation {
    Of(Comparator),
    In,
    NotIn,
}

const FUNCTIONS: [&str; 4] = ["len", "str", "int", "bool"];
const METHODS: [&str; 6] = ["get", "startswith", "endswith", "strip", "lower", "upper"];

/// # Errors
/// One line, when it is an expression that cannot be had here.
pub(crate) fn parse(text: &str) -> Result<Condition, String> {
    let refused = |why: String| format!("the condition {text:?} cannot be judged here: {why}");
    if text.len() > MAX_LENGTH {
        return Err(refused(format!("it has more than {MAX_LENGTH} bytes")));
    }
    let mut parser = Parser { tokens: tokens(text).map_err(refused)?, at: 0, depth: 0 };
    let expression = parser.or().map_err(refused)?;
    match parser.peek() {
        None => Ok(Condition(expression)),
        Some(token) => Err(refused(format!("there is {} too much", shown(token)))),
    }
}

impl Condition {
    /// Whether it holds of what a function returned.
    ///
    /// # Errors
    /// Python's sentence for an exception.
    pub(crate) fn holds(&self, answer: &Value) -> Result<bool, String> {
        Ok(self.0.value(answer)?.truthy())
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Name(name) => format!("{name:?}"),
        Token::Literal(value) => format!("{:?}", value.to_text()),
        Token::Sign(sign) => format!("{sign:?}"),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length;
        if first == '"' || first == '\'' {
            let (literal, after) = quoted(rest, first)?;
            tokens.push(Token::Literal(Value::Text(literal)));
            length = rest.len() - after.len();
        } else if first.is_ascii_digit() {
            length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
            let word = &rest[..length];
            let number = word.parse().map(Value::Int).or_else(|_| word.parse().map(Value::Float));
            tokens.push(Token::Literal(number.map_err(|_| format!("{word:?} is no number"))?));
        } else if first.is_alphabetic() || first == '_' {
            length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(match &rest[..length] {
                "True" => Token::Literal(Value::Bool(true)),
                "False" => Token::Literal(Value::Bool(false)),
                "None" => Token::Literal(Value::None),
                name => Token::Name(name.to_owned()),
            });
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("there is no sign {first:?}"))?;
            tokens.push(Token::Sign(sign));
            length = sign.len();
        }
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// A text in quotes, and what comes after it.
fn quoted(text: &str, quote: char) -> Result<(String, &str), String> {
    let mut literal = String::new();
    let mut chars = text[1..].char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, 'n')) => literal.push('\n'),
                Some((_, 't')) => literal.push('\t'),
                Some((_, c @ ('\\' | '\'' | '"'))) => literal.push(c),
                _ => return Err("a text has an escape other than of quotes, tabs and lines".into()),
            },
            c if c == quote => return Ok((literal, &text[at + 2..])),
            c => literal.push(c),
        }
    }
    Err("a text does not end".into())
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is(&self, ahead: usize, word: &str) -> bool {
        match self.tokens.get(self.at + ahead) {
            Some(Token::Name(name)) => name == word,
            Some(Token::Sign(sign)) => *sign == word,
            _ => false,
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let is = self.is(0, word);
        self.at += usize::from(is);
        is
    }

    fn need(&mut self, word: &str) -> Result<(), String> {
        if self.take(word) { Ok(()) } else { Err(format!("there is no {word:?} where one has to be")) }
    }

    fn or(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} expressions are in one another"));
        }
        let mut left = self.and()?;
        while self.take("or") {
            left = Expression::Or(left.into(), self.and()?.into());
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, String> {
        let mut left = self.not()?;
        while self.take("and") {
            left = Expression::And(left.into(), self.not()?.into());
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expression, String> {
        let mut count = 0;
        while self.take("not") {
            count += 1;
        }
        let mut expression = self.comparison()?;
        // `not not x` is a truth value.
        if count > 0 && count % 2 == 0 {
            expression = Expression::Not(expression.into());
        }
        Ok(if count > 0 { Expression::Not(expression.into()) } else { expression })
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        let left = self.operand()?;
        let mut chain = Vec::new();
        while let Some(relation) = self.relation() {
            chain.push((relation, self.operand()?));
        }
        Ok(if chain.is_empty() { left } else { Expression::Compare(left.into(), chain) })
    }

    fn relation(&mut self) -> Option<Relation> {
        let of = |words: &[&str], relation| (words.len(), relation);
        let found = if self.is(0, "not") && self.is(1, "in") {
            of(&["not", "in"], Relation::NotIn)
        } else if self.is(0, "is") && self.is(1, "not") {
            of(&["is", "not"], Relation::Of(Comparator::IsNot))
        } else if self.is(0, "is") {
            of(&["is"], Relation::Of(Comparator::Is))
        } else if self.is(0, "in") {
            of(&["in"], Relation::In)
        } else {
            let Some(Token::Sign(sign)) = self.peek() else { return None };
            let name = match *sign {
                "==" => "eq",
                "!=" => "ne",
                "<" => "lt",
                "<=" => "le",
                ">" => "gt",
                ">=" => "ge",
                _ => return None,
            };
            (1, Relation::Of(Comparator::named(name)?))
        };
        self.at += found.0;
        Some(found.1)
    }

    fn operand(&mut self) -> Result<Expression, String> {
        if self.take("-") {
            return Ok(Expression::Negative(self.trailed()?.into()));
        }
        self.trailed()
    }

    /// A value, and the subscripts and methods after it.
    fn trailed(&mut self) -> Result<Expression, String> {
        let mut value = self.atom()?;
        loop {
            if self.take("[") {
                let key = self.or()?;
                self.need("]")?;
                value = Expression::Item(value.into(), key.into());
            } else if self.take(".") {
                let Some(Token::Name(name)) = self.peek().cloned() else { return Err("a method has no name".into()) };
                self.at += 1;
                if !METHODS.contains(&name.as_str()) {
                    return Err(format!("there is no method {name}; there are {}", METHODS.join(", ")));
                }
                self.need("(")?;
                value = Expression::Method(value.into(), name, self.list(")")?);
            } else {
                return Ok(value);
            }
        }
    }

    /// Expressions with commas between, up to a sign.
    fn list(&mut self, end: &'static str) -> Result<Vec<Expression>, String> {
        let mut items = Vec::new();
        while !self.take(end) {
            items.push(self.or()?);
            if !self.take(",") {
                self.need(end)?;
                break;
            }
        }
        Ok(items)
    }

    fn atom(&mut self) -> Result<Expression, String> {
        let Some(token) = self.peek().cloned() else { return Err("it ends too early".into()) };
        self.at += 1;
        match token {
            Token::Literal(value) => Ok(Expression::Literal(value)),
            Token::Name(name) if name == "m_ret" => Ok(Expression::Answer),
            Token::Name(name) if FUNCTIONS.contains(&name.as_str()) && self.take("(") => {
                Ok(Expression::Call(name, self.list(")")?))
            }
            Token::Sign("(") => {
                let mut items = Vec::new();
                while !self.take(")") {
                    items.push(self.or()?);
                    if self.take(")") {
                        // In brackets alone, it is the value itself.
                        return Ok(if items.len() == 1 { items.remove(0) } else { Expression::List(items) });
                    }
                    self.need(",")?;
                }
                Ok(Expression::List(items))
            }
            Token::Sign("[") => Ok(Expression::List(self.list("]")?)),
            Token::Sign("{") => {
                let mut entries = Vec::new();
                while !self.take("}") {
                    let key = self.or()?;
                    self.need(":")?;
                    entries.push((key, self.or()?));
                    if !self.take(",") {
                        self.need("}")?;
                        break;
                    }
                }
                Ok(Expression::Dict(entries))
            }
            other => Err(format!("{} is not known here", shown(&other))),
        }
    }
}

impl Expression {
    fn value(&self, answer: &Value) -> Result<Value, String> {
        let all = |items: &[Expression]| items.iter().map(|item| item.value(answer)).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            Self::Answer => answer.clone(),
            Self::Literal(value) => value.clone(),
            Self::List(items) => Value::List(all(items)?),
            Self::Dict(entries) => {
                let entry = |(key, value): &(Self, Self)| Ok((key.value(answer)?, value.value(answer)?));
                Value::Dict(entries.iter().map(entry).collect::<Result<_, String>>()?)
            }
            Self::Not(of) => Value::Bool(!of.value(answer)?.truthy()),
            Self::Negative(of) => match of.value(answer)? {
                Value::Int(number) => Value::Int(-number),
                Value::Float(number) => Value::Float(-number),
                other => return Err(format!("bad operand type for unary -: '{}'", kind(&other))),
            },
            Self::And(left, right) => {
                let left = left.value(answer)?;
                if left.truthy() { right.value(answer)? } else { left }
            }
            Self::Or(left, right) => {
                let left = left.value(answer)?;
                if left.truthy() { left } else { right.value(answer)? }
            }
            Self::Compare(left, chain) => {
                let mut left = left.value(answer)?;
                for (relation, right) in chain {
                    let right = right.value(answer)?;
                    let is_so = match relation {
                        Relation::Of(comparator) => comparator.compare(&left, &right)?,
                        Relation::In => contains(&right, &left)?,
                        Relation::NotIn => !contains(&right, &left)?,
                    };
                    if !is_so {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Value::Bool(true)
            }
            Self::Item(of, key) => item(&of.value(answer)?, &key.value(answer)?)?,
            Self::Call(name, args) => function(name, &all(args)?)?,
            Self::Method(of, name, args) => method(&of.value(answer)?, name, &all(args)?)?,
        })
    }
}

fn item(of: &Value, key: &Value) -> Result<Value, String> {
    let place = |length: usize| {
        let Value::Int(at) = key else { return None };
        let at = if *at < 0 { at + length as i64 } else { *at };
        usize::try_from(at).ok().filter(|at| *at < length)
    };
    match of {
        Value::Dict(entries) => {
            let found = entries.iter().find(|(known, _)| known.same(key)).map(|(_, value)| value.clone());
            found.ok_or_else(|| if key.text().is_some() { format!("'{}'", key.to_text()) } else { key.to_text() })
        }
        Value::List(items) if matches!(key, Value::Int(_)) => {
            Ok(items[place(items.len()).ok_or("list index out of range")?].clone())
        }
        Value::Text(text) if matches!(key, Value::Int(_)) => {
            let at = place(text.chars().count()).ok_or("string index out of range")?;
            Ok(Value::Text(text.chars().skip(at).take(1).collect()))
        }
        Value::List(_) => Err(format!("list indices must be integers or slices, not {}", kind(key))),
        Value::Text(_) => Err(format!("string indices must be integers, not '{}'", kind(key))),
        _ => Err(format!("'{}' object is not subscriptable", kind(of))),
    }
}

fn function(name: &str, args: &[Value]) -> Result<Value, String> {
    let [of] = args else { return Err(format!("{name}() is called with one argument here")) };
    Ok(match (name, of) {
        ("len", Value::Text(text)) => (text.chars().count() as i64).into(),
        ("len", Value::List(items)) => (items.len() as i64).into(),
        ("len", Value::Dict(entries)) => (entries.len() as i64).into(),
        ("len", _) => return Err(format!("object of type '{}' has no len()", kind(of))),
        ("str", _) => of.to_text().into(),
        ("bool", _) => of.truthy().into(),
        (_, Value::Bool(is)) => Value::Int(i64::from(*is)),
        (_, Value::Int(_) | Value::Big(_)) => of.clone(),
        (_, Value::Float(number)) => Value::Int(*number as i64),
        (_, Value::Text(text)) => {
            let number = text.trim().parse().map(Value::Int);
            number.map_err(|_| format!("invalid literal for int() with base 10: '{text}'"))?
        }
        _ => return Err(format!("int() argument must be a string or a number, not '{}'", kind(of))),
    })
}

fn method(of: &Value, name: &str, args: &[Value]) -> Result<Value, String> {
    let none = || format!("'{}' object has no attribute '{name}'", kind(of));
    match (of, name, args) {
        (Value::Dict(entries), "get", [key]) | (Value::Dict(entries), "get", [key, _]) => {
            let found = entries.iter().find(|(known, _)| known.same(key)).map(|(_, value)| value.clone());
            Ok(found.or_else(|| args.get(1).cloned()).unwrap_or_default())
        }
        (Value::Text(text), "startswith", [Value::Text(part)]) => Ok(text.starts_with(part.as_str()).into()),
        (Value::Text(text), "endswith", [Value::Text(part)]) => Ok(text.ends_with(part.as_str()).into()),
        (Value::Text(text), "strip", []) => Ok(text.trim().into()),
        (Value::Text(text), "lower", []) => Ok(text.to_lowercase().into()),
        (Value::Text(text), "upper", []) => Ok(text.to_uppercase().into()),
        (Value::Text(_), "startswith" | "endswith" | "strip" | "lower" | "upper", _) | (Value::Dict(_), "get", _) => {
            Err(format!("{name}() is called with other arguments than it takes here"))
        }
        _ => Err(none()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, answer: &Value) -> Result<bool, String> {
        parse(text)?.holds(answer)
    }

    #[test]
    fn conditions_are_pythons() {
        let answer = Value::dict([
            ("result", Value::Bool(true)),
            ("list", Value::List(vec![Value::dict([("State", "running".into())]), Value::Int(5)])),
            ("text", " Ready\n".into()),
        ]);
        for (text, is_so) in [
            ("m_ret", true),
            ("not m_ret", false),
            ("not not m_ret", true),
            ("m_ret['result'] is True", true),
            ("m_ret[\"result\"] is not True", false),
            ("m_ret['list'][0]['State'] == 'running'", true),
            ("m_ret['list'][-1] >= 5 and m_ret['list'][1] < 5.5", true),
            ("1 < m_ret['list'][1] <= 5", true),
            ("'result' in m_ret", true),
            ("'nothing' not in m_ret", true),
            ("m_ret.get('nothing') is None", true),
            ("m_ret.get('nothing', 3) == 3", true),
            ("len(m_ret) == 3 or m_ret['nothing']", true),
            ("m_ret['text'].strip().lower().startswith('rea')", true),
            ("m_ret['list'][1] in (1, 5,)", true),
            ("m_ret['list'][1] in [-5, 6]", false),
            ("(m_ret['result'])", true),
            ("m_ret['list'][0] == {'State': 'running'}", true),
            ("int('7') == 7 and str(1) == '1' and bool([]) is False", true),
        ] {
            assert_eq!(holds(text, &answer), Ok(is_so), "{text}");
        }
        for (text, why) in [("m_ret['x']", "'x'"), ("m_ret['list'][7]", "list index out of range")] {
            assert_eq!(holds(text, &answer), Err(why.into()), "{text}");
        }
        assert_eq!(holds("m_ret['x']", &Value::Int(1)), Err("'int' object is not subscriptable".into()));
    }

    #[test]
    fn other_expressions_are_refused() {
        let deep = format!("{}m_ret{}", "(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH));
        for text in [
            "",
            "m_ret ==",
            "__import__('os')",
            "m_ret.pop()",
            "m_ret.__class__",
            "lambda: 1",
            "x",
            "m_ret; 1",
            "m_ret = 1",
            "m_ret[0:1]",
            "'a",
            "m_ret m_ret",
            "1x",
            "m_ret % 2",
            deep.as_str(),
            &"m_ret and ".repeat(500),
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
