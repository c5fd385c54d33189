//! Grains of modules, and the file of static grains: what a hostile module returns is left out and said, and what it may
//! write is what the owner granted.

use std::time::Duration;

use brine_protocol::value::{Value, ValueExt as _, map};

use crate::asks::{LINE, NOTHING};
use crate::rig::{AT_ONCE, Gets, LIMITS, Rig, WALL, fails, hostile, returns, text};

/// The time of one module's grains, with what the good jobs beside it take.
const COLLECTED: Duration = Duration::from_secs(8);

async fn collect(rig: &Rig, attack: &str) {
    std::fs::write(rig.dir.join("conf/grains"), format!("attack: '{attack}'\nowner: kept\n")).unwrap();
    rig.attack("saltutil.refresh_grains", vec![Value::from(false)], COLLECTED, &returns("true")).await;
}

async fn grain(rig: &Rig, name: &str) -> Value {
    rig.run("grains.get", vec![text(name)]).await.value
}

/// The findings of `sandbox.check` about grains.
async fn findings(rig: &Rig) -> Vec<String> {
    let checked = rig.run("sandbox.check", vec![]).await.value;
    let lines = checked
        .get_list("findings")
        .unwrap_or_else(|| panic!("{checked}"))
        .iter()
        .filter_map(|line| line.text().map(str::to_owned));
    lines.filter(|line| line.starts_with("the grains of module")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn grains_of_a_hostile_module_are_left_out_and_said() {
    let rig =
        Rig::start(&format!("  limits: {{wall: 20s, cpu: 10s, memory: 64MiB}}\n  modules:\n    hostile: {NOTHING}\n"))
            .await;
    rig.install("hostile", &hostile()).await;
    let os = grain(&rig, "os").await;
    collect(&rig, "").await;
    assert_eq!((grain(&rig, "found").await, findings(&rig).await), (text("hostile-test"), vec![]));
    for (attack, why) in [
        ("large", "they take 31457…, more than the 262144 there may be"),
        ("huge", "…4 MiB…"),
        ("deep", "…"),
        ("deeper", "they nest deeper than 16 levels"),
        ("forever", "…wall clock limit of …"),
        ("asleep", "…wall clock limit of …"),
        ("names", "a name is not one line of at most 256 bytes"),
        ("forged", "sandbox is the minion's own account of its sandbox"),
        ("list", "they are no dict"),
        ("again", "…wall clock limit of …"),
        ("trap", "…"),
        ("nothing", "…no attack nothing"),
    ] {
        collect(&rig, attack).await;
        let said = findings(&rig).await;
        let said = said.first().cloned().unwrap_or_default();
        rig.said(&format!("grains: {attack}"), &said, &format!("the grains of module hostile are left out: {why}"));
        for (name, expected) in [("found", text("")), ("owner", text("kept")), ("os", os.clone())] {
            assert_eq!(grain(&rig, name).await, expected, "{attack}: {name}");
        }
        let walls = grain(&rig, "sandbox:walls:no_new_privs").await;
        assert_eq!(walls, Value::from(true), "{attack}");
    }
    // As in Salt, grains of modules replace those of the host.
    collect(&rig, "os").await;
    assert_eq!((grain(&rig, "os").await, findings(&rig).await), (text("Hostile"), vec![]));
    rig.end().await;
}

/// A function for the mine that returns 100 MiB or hangs is left out. There is no master that could be told of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_for_the_mine_that_floods_is_left_out() {
    let rig = Rig::start(&format!("  {LIMITS}\n  modules:\n    hostile: {NOTHING}\n")).await;
    rig.install("hostile", &hostile()).await;
    let functions =
        |name: &str, args: Vec<Value>| vec![("mine_functions".to_owned(), map([(name, Value::Array(args))]))];
    for (name, args) in [("hostile.flood", vec![Value::from(100 << 20)]), ("hostile.spin", vec![])] {
        rig.attack_with("mine.update", vec![], functions(name, args), WALL, &returns("true")).await;
    }
    let told = functions("test.ping", vec![]);
    rig.attack_with("mine.update", vec![], told, AT_ONCE, &fails("…there is no master to tell…")).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn static_grains_are_written_as_granted() {
    let granted = NOTHING.replace("static_grains: []", "static_grains: [role, \"app*\"]");
    let rig =
        Rig::start(&format!("  modules:\n    hostile: {granted}\n    grains.setval: {{static_grains: [role]}}\n"))
            .await;
    rig.install("hostile", &hostile()).await;
    let set = |name: &str| vec![text(name), text("web")];
    let refused = |module: &str, name: &str| -> Gets {
        let line = LINE.replace("hostile: {", &format!("{module}: {{"));
        fails(format!(
            "…module {} may not write the static grain {name}{line}static_grains: […{name}]…",
            module.split('.').next().unwrap()
        ))
    };
    for (fun, name, gets) in [
        ("hostile.set_grain", "role", returns("written")),
        ("hostile.set_grain", "apps", returns("written")),
        ("hostile.set_grain", "os", refused("hostile", "os")),
        ("hostile.set_grain", "id", refused("hostile", "id")),
        ("hostile.set_grain", "sandbox", fails("…the grain sandbox is the minion's own account of its sandbox")),
        ("hostile.set_grain", "a\nb: c", fails("…the name of a grain has control characters")),
        ("hostile.set_grain", "", fails("…the name of a grain is empty")),
        ("grains.setval", "role", returns("{\"role\": \"web\"}")),
        ("grains.setval", "other", refused("grains.setval", "other")),
    ] {
        rig.attack(fun, set(name), AT_ONCE, &gets).await;
    }
    let file = rig.dir.join("conf/grains");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "apps: web\nrole: web\n");
    // Other functions of the standard module have its grant, and the grain is there at once.
    rig.attack("grains.append", vec![text("list"), text("x")], AT_ONCE, &returns("{\"list\": [\"x\"]}")).await;
    assert_eq!(grain(&rig, "list:0").await, text("x"));
    rig.attack("hostile.set_grain", vec![text("role")], AT_ONCE, &returns("written")).await;
    assert_eq!(grain(&rig, "role").await, text(""));
    // What is not the minion's to replace stays.
    std::fs::remove_file(&file).unwrap();
    let elsewhere = rig.dir.join("elsewhere");
    std::fs::write(&elsewhere, "role: db\n").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    rig.attack(
        "hostile.set_grain",
        set("role"),
        AT_ONCE,
        &fails("…is a symbolic link, which the minion does not write through"),
    )
    .await;
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "- a list\n").unwrap();
    rig.attack("hostile.set_grain", set("role"), AT_ONCE, &fails("…Unable to read existing grains file: …")).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "- a list\n");
    rig.end().await;
}
