//! A connection to a server: made on demand, kept while it works, and every wait for it is bounded.

use std::error::Error as _;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error, NoTls};
use tokio_util::task::AbortOnDropHandle;

use super::options::{PostgresOpts, SslMode};

/// Time limit of a batch or a query. A slower server counts as away.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason of a failure.
#[derive(Debug)]
pub(super) enum PgFailure {
    /// The server will never accept these values.
    Refused(String),
    /// Anything else; a later attempt may succeed.
    Now(String),
}

/// The connection, if it is open. Only one caller uses it at a time.
pub(super) struct PgSession {
    opts: PostgresOpts,
    open: Mutex<Option<Open>>,
}

/// An open connection. Dropping it closes the connection.
pub(super) struct Open {
    pub(super) client: Client,
    _driver: AbortOnDropHandle<()>,
}

impl PgSession {
    pub(super) fn new(opts: PostgresOpts) -> Self {
        Self { opts, open: Mutex::new(None) }
    }

    /// Runs `work` with the connection. The connection is dropped after a failure other than a refusal, and if this
    /// future is dropped during `work`.
    pub(super) async fn with<T>(
        &self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, Error>,
    ) -> Result<T, PgFailure> {
        let attempt = async {
            let mut place = self.open.lock().await;
            // Taken out, and put back only if it still works.
            let mut open = match place.take().filter(|open| !open.client.is_closed()) {
                Some(open) => open,
                None => self.connect().await?,
            };
            let done = work(&mut open.client).await.map_err(|error| failure(&self.opts, &error));
            if matches!(done, Ok(_) | Err(PgFailure::Refused(_))) {
                *place = Some(open);
            }
            done
        };
        match tokio::time::timeout(ANSWER_TIMEOUT, attempt).await {
            Ok(done) => done,
            Err(_) => {
                Err(PgFailure::Now(format!("{} did not answer in {} s", place(&self.opts), ANSWER_TIMEOUT.as_secs())))
            }
        }
    }

    async fn connect(&self) -> Result<Open, PgFailure> {
        let opts = &self.opts;
        let mut config = Config::new();
        config
            .host(&opts.host)
            .port(opts.port)
            .user(&opts.user)
            .password(opts.password.expose())
            .dbname(&opts.db)
            .connect_timeout(opts.connect_timeout)
            .application_name("salt-master")
            .ssl_mode(match opts.ssl {
                SslMode::Disable => tokio_postgres::config::SslMode::Disable,
                SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
                SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => tokio_postgres::config::SslMode::Require,
            });
        let failed = |error: Error| failure(opts, &error);
        // No TLS on a unix socket, as in libpq.
        if opts.ssl == SslMode::Disable || opts.host.starts_with('/') {
            config.ssl_mode(tokio_postgres::config::SslMode::Disable);
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            return Ok(Open { client, _driver: drive(connection) });
        }
        self.connect_tls(&config).await
    }

    async fn connect_tls(&self, config: &Config) -> Result<Open, PgFailure> {
        let opts = &self.opts;
        let tls = connector(opts).map_err(|error| PgFailure::Now(format!("its TLS settings do not work: {error}")))?;
        let (client, connection) = config.connect(tls).await.map_err(|error| failure(opts, &error))?;
        Ok(Open { client, _driver: drive(connection) })
    }
}

fn drive(connection: impl Future<Output = Result<(), Error>> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection to PostgreSQL ended: {error}");
        }
    }))
}

fn connector(opts: &PostgresOpts) -> Result<postgres_openssl::MakeTlsConnector, openssl::error::ErrorStack> {
    use openssl::ssl::{SslConnector, SslFiletype, SslMethod, SslVerifyMode};

    let mut builder = SslConnector::builder(SslMethod::tls_client())?;
    if let Some(root) = &opts.ssl_root {
        builder.set_ca_file(root)?;
    }
    if let Some((cert, key)) = &opts.ssl_own {
        builder.set_certificate_chain_file(cert)?;
        builder.set_private_key_file(key, SslFiletype::PEM)?;
    }
    // As in libpq, `require` with a root certificate means verify-ca.
    let verify = match opts.ssl {
        SslMode::Disable | SslMode::Prefer => false,
        SslMode::Require => opts.ssl_root.is_some(),
        SslMode::VerifyCa | SslMode::VerifyFull => true,
    };
    builder.set_verify(if verify { SslVerifyMode::PEER } else { SslVerifyMode::NONE });
    let mut tls = postgres_openssl::MakeTlsConnector::new(builder.build());
    let name_too = opts.ssl == SslMode::VerifyFull;
    tls.set_callback(move |config, _| {
        config.set_verify_hostname(name_too);
        Ok(())
    });
    Ok(tls)
}

fn place(opts: &PostgresOpts) -> String {
    format!("the PostgreSQL server {}:{} (database {}, user {})", opts.host, opts.port, opts.db, opts.user)
}

fn failure(opts: &PostgresOpts, error: &Error) -> PgFailure {
    let Some(said) = error.as_db_error() else {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        return PgFailure::Now(format!("{}: {error}{cause}", place(opts)));
    };
    let code = said.code();
    // Data exceptions, constraints and program limits (PostgreSQL, appendix A): the same values would fail again.
    if ["22", "23", "54"].into_iter().any(|class| code.code().starts_with(class)) {
        return PgFailure::Refused(said.message().to_owned());
    }
    let advice = if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_COLUMN {
        ". Make Salt's tables there (docs/jobs.md)"
    } else if *code == SqlState::INVALID_PASSWORD || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        ". Set user and password of the returner"
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        ". Make the database, or set db of the returner"
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        ". Grant the user select, insert, update and delete on Salt's tables"
    } else {
        ""
    };
    PgFailure::Now(format!("{}: {} ({}){advice}", place(opts), said.message(), code.code()))
}
