//! Where PostgreSQL is. `NAME.returner.…` holds the settings of a further server, for `--return_config NAME`.

use super::*;

settings! { AREA = "Returners";
    /// Name or address of the server, or the folder of its socket. All these settings also exist for `returner.pgjsonb`.
    POSTGRES_HOST: String = text("returner.postgres.host", master("localhost")).private();
    /// Port of the server.
    POSTGRES_PORT: u16 = port("returner.postgres.port", master("5432")).private();
    /// Database.
    POSTGRES_DB: String = text("returner.postgres.db", master("salt")).private();
    /// User of the database.
    POSTGRES_USER: String = text("returner.postgres.user", master("salt")).private();
    /// Password of that user. For pgjsonb it is `returner.pgjsonb.pass`.
    POSTGRES_PASSWD: String = text("returner.postgres.passwd", master("salt")).private();
    /// Time that the server may take to answer a connection.
    POSTGRES_CONNECT_TIMEOUT: u64 = seconds("returner.postgres.connect_timeout", master("10"), 1..=600).private();
    /// When to encrypt the connection and what to check.
    POSTGRES_SSLMODE: String =
        choice("returner.postgres.sslmode", master("prefer"), &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])
            .private();
    /// File of the authorities that may sign the server's certificate.
    POSTGRES_SSLROOTCERT: String = text("returner.postgres.sslrootcert", master(NONE)).private();
    /// File of the master's own certificate. It needs `sslkey`.
    POSTGRES_SSLCERT: String = text("returner.postgres.sslcert", master(NONE)).private();
    /// File of its key.
    POSTGRES_SSLKEY: String = text("returner.postgres.sslkey", master(NONE)).private();
}
