//! RSA keys of 2048 bits for masters and minions under test. They are made already, because making one takes about a
//! second and each test is a process of its own. They are public: never use them anywhere else.

/// Private keys as PEM (PKCS#1). A test uses different ones where two keys must differ.
pub const PEM: [&str; 3] =
    [include_str!("../keys/0.pem"), include_str!("../keys/1.pem"), include_str!("../keys/2.pem")];
