"""Many calls of Python's salt-run, each as a process of its own: argv is the configuration folder and a list of lists of words in JSON.
It prints a list of what each call printed and its exit code. To start the interpreter for each would take most of the time."""

import json
import os
import sys
import tempfile
import traceback

import salt.cli.run
import salt.loader
import salt.minion
import salt.runner
import salt.runners.jobs
import salt.scripts
import salt.utils.parsers


def call(words):
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.dup2(out.fileno(), 1)
                sys.argv = ["salt-run", "-c", sys.argv[1], *words]
                salt.scripts.salt_run()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        return [out.read().decode(), code]


print(json.dumps([call(words) for words in json.loads(sys.argv[2])]))
