"""Many calls of Python's commands, each as a process of its own: argv is the configuration folder, a list of calls in JSON, each a list of
words that begins with the command's name, and how many run at a time. It prints a list of what each call printed, its exit code and what it
said on standard error. To start the interpreter for each would take most of the time."""

import json
import os
import sys
import tempfile
import traceback

import salt.cli.cp
import salt.cli.run
import salt.cli.salt
import salt.client
import salt.loader
import salt.minion
import salt.runner
import salt.runners.jobs
import salt.scripts
import salt.utils.parsers

PROGRAMS = {
    "salt": salt.scripts.salt_main,
    "salt-cp": salt.scripts.salt_cp,
    "salt-run": salt.scripts.salt_run,
}


def start(words):
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = [words[0], "-c", sys.argv[1], *words[1:]]
            PROGRAMS[words[0]]()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return child, out, err


def end(child, out, err):
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read().decode())
        file.close()
    return [texts[0], code, texts[1]]


calls = json.loads(sys.argv[2])
at_a_time = int(sys.argv[3])
done = []
for first in range(0, len(calls), at_a_time):
    running = [start(words) for words in calls[first : first + at_a_time]]
    done.extend(end(*one) for one in running)
print(json.dumps(done))
