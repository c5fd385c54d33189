"""Runs Python's commands and scripts, each in a process of its own, which is forked and so need not load Salt. argv has the name of an
abstract socket. A request is a line of JSON: words, which begin with the command's name or with -c and a script, and the files for standard
output and standard error. The answer is a line with the exit code. The server ends with its standard input."""

import json
import os
import select
import signal
import socket
import sys
import traceback

import salt.cli.cp
import salt.cli.key
import salt.cli.run
import salt.cli.salt
import salt.client
import salt.key
import salt.loader
import salt.minion
import salt.runner
import salt.scripts
import salt.utils.parsers

PROGRAMS = {
    "salt": salt.scripts.salt_main,
    "salt-cp": salt.scripts.salt_cp,
    "salt-key": salt.scripts.salt_key,
    "salt-run": salt.scripts.salt_run,
}


def run(words, out, err):
    code = 1
    try:
        for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
            os.dup2(os.open(path, flags), number)
        if words[0] == "-c":
            sys.argv = ["-c", *words[2:]]
            exec(compile(words[1], "<script>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = words
            PROGRAMS[words[0]]()
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve(connection):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    file = connection.makefile("rw")
    request = json.loads(file.readline())
    child = os.fork()
    if child == 0:
        run(*request)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=file, flush=True)
    os._exit(0)


listener = socket.socket(socket.AF_UNIX)
listener.bind("\0" + sys.argv[1])
listener.listen(64)
# Nobody waits for what serves a request.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
while True:
    ready, _, _ = select.select([listener, sys.stdin], [], [])
    if sys.stdin in ready:
        sys.exit()
    connection, _ = listener.accept()
    if os.fork() == 0:
        serve(connection)
    connection.close()
