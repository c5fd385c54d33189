//! The module `hashutil`: digests, base64 and HMACs. The functions and their documentation are in `wit/world.wit`; what
//! they compute is in `brine_render::functions`, as for templates.

wit_bindgen::generate!({
    world: "hashutil",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
    },
    generate_all,
});

use brine_guest::changes::{self, Put};
use brine_guest::{Value, compute};
use brine_render::functions::Module as Functions;

struct Module;

type Answer = Result<Data, String>;

fn call<const N: usize>(function: &str, arguments: [(&str, Data); N]) -> Answer {
    let arguments = arguments.map(|(name, value)| (name, Some(value)));
    compute::call(Functions::HASHUTIL, &compute::nothing(), function, arguments)
}

fn signature(function: &str, string: Data, shared_secret: Data, challenge_hmac: Data) -> Answer {
    call(function, [("string", string), ("shared_secret", shared_secret), ("challenge_hmac", challenge_hmac)])
}

fn digest(instr: Data, checksum: Option<String>) -> Answer {
    call("digest", [("instr", instr), ("checksum", checksum.as_deref().unwrap_or("md5").into())])
}

impl Guest for Module {
    fn digest(instr: Data, checksum: Option<String>) -> Answer {
        digest(instr, checksum)
    }

    fn digest_file(infile: String, checksum: Option<String>) -> Answer {
        match changes::is(&infile, changes::Kind::Regular)?.then(|| changes::read(&infile)).transpose()?.flatten() {
            Some(content) => digest(Value::Bytes(content).into(), checksum),
            None => Err(format!("File path '{infile}' not found.")),
        }
    }

    fn base64_b64encode(instr: Data) -> Answer {
        call("base64_b64encode", [("instr", instr)])
    }

    fn base64_b64decode(instr: Data) -> Answer {
        call("base64_b64decode", [("instr", instr)])
    }

    fn base64_encodestring(instr: Data) -> Answer {
        call("base64_encodestring", [("instr", instr)])
    }

    fn base64_decodestring(instr: Data) -> Answer {
        call("base64_decodestring", [("instr", instr)])
    }

    fn base64_encodefile(fname: String) -> Answer {
        let content = changes::read(&fname)?;
        let content = content.ok_or_else(|| format!("[Errno 2] No such file or directory: '{fname}'"))?;
        call("base64_encodestring", [("instr", Value::Bytes(content).into())])
    }

    fn base64_decodefile(instr: Data, outfile: String) -> Result<bool, String> {
        let content = match call("base64_decodestring", [("instr", instr)])?.value()? {
            Value::Bytes(content) => content,
            other => other.to_text().into_bytes(),
        };
        Put::new(&outfile).follow(true).bytes(content)?;
        Ok(true)
    }

    fn md5_digest(instr: Data) -> Answer {
        call("md5_digest", [("instr", instr)])
    }

    fn sha256_digest(instr: Data) -> Answer {
        call("sha256_digest", [("instr", instr)])
    }

    fn sha512_digest(instr: Data) -> Answer {
        call("sha512_digest", [("instr", instr)])
    }

    fn hmac_signature(string: Data, shared_secret: Data, challenge_hmac: Data) -> Answer {
        signature("hmac_signature", string, shared_secret, challenge_hmac)
    }

    fn hmac_compute(string: Data, shared_secret: Data) -> Answer {
        call("hmac_compute", [("string", string), ("shared_secret", shared_secret)])
    }

    fn github_signature(string: Data, shared_secret: Data, challenge_hmac: Data) -> Answer {
        signature("github_signature", string, shared_secret, challenge_hmac)
    }
}

export!(Module);
