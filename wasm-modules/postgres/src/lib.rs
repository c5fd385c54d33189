//! The module `postgres`: PostgreSQL by its own programs. The functions and their documentation are in `wit/world.wit`; the states are modules
//! of their own.
//!
//! - [`server`]: the server of a call, and what psql is asked there · [`csv`]: its answers · [`quote`]: names and values in SQL
//! - [`databases`], [`tablespaces`], [`roles`], [`extensions`], [`schemas`] (and languages), [`privileges`]
//! - [`returner`]: returns as rows, over a connection of the module's own
//! - [`directories`]: initdb and Debian's clusters · [`version`]: versions of extensions

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "postgres",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
        "brine:host/process@1.0.0": brine_guest::host::process,
        "wasi:io/error@0.2.6": brine_tcp::wasi::io::error,
        "wasi:io/poll@0.2.6": brine_tcp::wasi::io::poll,
        "wasi:io/streams@0.2.6": brine_tcp::wasi::io::streams,
        "wasi:sockets/network@0.2.6": brine_tcp::wasi::sockets::network,
        "wasi:sockets/instance-network@0.2.6": brine_tcp::wasi::sockets::instance_network,
        "wasi:sockets/ip-name-lookup@0.2.6": brine_tcp::wasi::sockets::ip_name_lookup,
        "wasi:sockets/tcp@0.2.6": brine_tcp::wasi::sockets::tcp,
        "wasi:sockets/tcp-create-socket@0.2.6": brine_tcp::wasi::sockets::tcp_create_socket,
    },
    generate_all,
});

mod csv;
mod databases;
mod directories;
mod extensions;
mod privileges;
mod quote;
mod returner;
mod roles;
mod schemas;
mod server;
mod tablespaces;
mod version;

use brine_guest::Value;

use roles::Kind;
use server::Server;

struct Module;

// Salt's arguments in Salt's order.
#[rustfmt::skip]
impl Guest for Module {
    fn returner(ret: Data) -> Result<bool, String> {
        returner::write(&ret.value()?)
    }

    brine_postgresql::functions! {
        fn version(; user host port maintenance_db password runas) -> Data {
            |given| server::version(given).map(Data::from)
        }
        fn psql_query(query; user host port maintenance_db password runas write) -> Data {
            |given| server::psql_query(given).map(Data::from)
        }
        fn db_list(; user host port maintenance_db password runas) -> Data {
            |given| databases::list(&Server::new(given)?).map(Data::from)
        }
        fn db_exists(name; user host port maintenance_db password runas) -> bool {
            |given| databases::exists(given)
        }
        fn db_create(name; user host port maintenance_db password tablespace encoding lc_collate lc_ctype owner template runas) -> bool {
            |given| databases::create(given)
        }
        fn db_alter(name; user host port maintenance_db password tablespace owner owner_recurse runas) -> bool {
            |given| databases::alter(given)
        }
        fn db_remove(name; user host port maintenance_db password runas) -> bool {
            |given| databases::remove(given)
        }
        fn tablespace_list(; user host port maintenance_db password runas) -> Data {
            |given| tablespaces::list(&Server::new(given)?).map(Data::from)
        }
        fn tablespace_exists(name; user host port maintenance_db password runas) -> bool {
            |given| tablespaces::exists(given)
        }
        fn tablespace_create(name location; options owner user host port maintenance_db password runas) -> bool {
            |given| tablespaces::create(given)
        }
        fn tablespace_alter(name; user host port maintenance_db password new_name new_owner set_option reset_option runas) -> bool {
            |given| tablespaces::alter(given)
        }
        fn tablespace_remove(name; user host port maintenance_db password runas) -> bool {
            |given| tablespaces::remove(given)
        }
        fn user_list(; user host port maintenance_db password runas return_password) -> Data {
            |given| roles::list(&Server::new(given)?, given.is_set("return_password")).map(Data::from)
        }
        fn role_get(name; user host port maintenance_db password runas return_password) -> Data {
            |given| roles::get(&Server::new(given)?, &given.name("name"), given.is_set("return_password")).map(Data::from)
        }
        fn user_exists(name; user host port maintenance_db password runas) -> bool {
            |given| roles::exists(&Server::new(given)?, &given.name("name"))
        }
        fn user_create(username; user host port maintenance_db password createdb createroles inherit login connlimit encrypted superuser
            replication rolepassword valid_until groups runas) -> bool {
            |given| roles::create(given, "username", Kind::User)
        }
        fn user_update(username; user host port maintenance_db password createdb createroles encrypted superuser inherit login connlimit
            replication rolepassword valid_until groups runas) -> bool {
            |given| roles::update(given, "username")
        }
        fn available_extensions(; user host port maintenance_db password runas) -> Data {
            |given| extensions::available(&Server::new(given)?).map(Data::from)
        }
        fn installed_extensions(; user host port maintenance_db password runas) -> Data {
            |given| extensions::installed(&Server::new(given)?).map(Data::from)
        }
        fn get_available_extension(name; user host port maintenance_db password runas) -> Data {
            |given| extensions::get_available(given).map(Data::from)
        }
        fn get_installed_extension(name; user host port maintenance_db password runas) -> Data {
            |given| extensions::get_installed(given).map(Data::from)
        }
        fn is_available_extension(name; user host port maintenance_db password runas) -> bool {
            |given| extensions::is_available(given)
        }
        fn is_installed_extension(name; user host port maintenance_db password runas) -> bool {
            |given| extensions::is_installed(given)
        }
        fn create_metadata(name; ext_version schema user host port maintenance_db password runas) -> Data {
            |given| extensions::metadata(given).map(Data::from)
        }
        fn drop_extension(name; if_exists restrict cascade user host port maintenance_db password runas) -> bool {
            |given| extensions::drop(given)
        }
        fn create_extension(name; if_not_exists schema ext_version from_version user host port maintenance_db password runas) -> bool {
            |given| extensions::create(given)
        }
        fn user_remove(username; user host port maintenance_db password runas) -> bool {
            |given| roles::remove(given, "username")
        }
        fn group_create(groupname; user host port maintenance_db password createdb createroles encrypted login inherit superuser
            replication rolepassword groups runas) -> bool {
            |given| roles::create(given, "groupname", Kind::Group)
        }
        fn group_update(groupname; user host port maintenance_db password createdb createroles encrypted inherit login superuser
            replication rolepassword groups runas) -> bool {
            |given| roles::update(given, "groupname")
        }
        fn group_remove(groupname; user host port maintenance_db password runas) -> bool {
            |given| roles::remove(given, "groupname")
        }
        fn owner_to(dbname ownername; user host port password runas) -> Data {
            |given| {
                let (database, owner) = (given.name("dbname"), given.name("ownername"));
                let inside = Server::new(given)?.database(&database);
                Ok(server::ended(&databases::owner_to(&inside, &database, &owner)?).into())
            }
        }
        fn schema_create(dbname name; owner user db_user db_password db_host db_port) -> bool {
            |given| schemas::create(given)
        }
        fn schema_remove(dbname name; user db_user db_password db_host db_port) -> bool {
            |given| schemas::remove(given)
        }
        fn schema_exists(dbname name; user db_user db_password db_host db_port) -> bool {
            |given| schemas::exists(given)
        }
        fn schema_get(dbname name; user db_user db_password db_host db_port) -> Data {
            |given| schemas::get(given).map(Data::from)
        }
        fn schema_list(dbname; user db_user db_password db_host db_port) -> Data {
            |given| schemas::list(&Server::of_schemas(given)?).map(Data::from)
        }
        fn language_list(maintenance_db; user host port password runas) -> Data {
            |given| schemas::languages(&Server::new(given)?).map(Data::from)
        }
        fn language_exists(name maintenance_db; user host port password runas) -> bool {
            |given| schemas::language_exists(given)
        }
        fn language_create(name maintenance_db; user host port password runas) -> bool {
            |given| schemas::change_language(given, "CREATE", false)
        }
        fn language_remove(name maintenance_db; user host port password runas) -> bool {
            |given| schemas::change_language(given, "DROP", true)
        }
        fn privileges_list(name object_type; prepend maintenance_db user host port password runas) -> Data {
            |given| privileges::list(given).map(Data::from)
        }
        fn has_privileges(name object_name object_type; privileges grant_option prepend maintenance_db user host port password runas) -> bool {
            |given| privileges::has(given)
        }
        fn privileges_grant(name object_name object_type; privileges grant_option prepend maintenance_db user host port password runas) -> bool {
            |given| privileges::grant(given)
        }
        fn privileges_revoke(name object_name object_type; privileges prepend maintenance_db user host port password runas) -> bool {
            |given| privileges::revoke(given)
        }
        fn datadir_init(name; auth user password encoding locale waldir checksums runas) -> bool {
            |given| directories::init(given)
        }
        fn datadir_exists(name;) -> bool {
            |given| directories::exists(given)
        }
        fn cluster_create(version; name port locale encoding datadir allow_group_access data_checksums wal_segsize) -> Data {
            |given| directories::create_cluster(given).map(Data::from)
        }
        fn cluster_list(; verbose) -> Data {
            |given| {
                let clusters = directories::clusters()?;
                Ok(match given.is_set("verbose") {
                    true => Value::Dict(clusters.into_iter().map(|(name, told)| (name.into(), told)).collect()),
                    false => Value::List(clusters.into_iter().map(|(name, _)| name.into()).collect()),
                }.into())
            }
        }
        fn cluster_exists(version; name) -> bool {
            |given| directories::cluster_exists(given)
        }
        fn cluster_remove(version; name stop) -> Data {
            |given| directories::remove_cluster(given).map(Data::from)
        }
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
