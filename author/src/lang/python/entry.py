"""What salt-module puts before module.py: what a Python author expects of a program, told in a job's words.

An exception that nothing catches becomes the job's error, with its place; its traceback and what is printed go to the
minion's log where the world imports brine:host/log, and nowhere where it does not. There is no WASI here, on which the
interpreter would write.
"""

import functools
import io
import sys

import wit_world
from componentize_py_types import Err

import module
from brine_exports import CLASSES
from module import *  # noqa: F403

try:
    from wit_world.imports import log as _log
except ImportError:
    _log = None


class _Lines(io.TextIOBase):
    def __init__(self, level):
        self._level, self._rest = level, ""

    def writable(self):
        return True

    def write(self, text):
        if _log is not None:
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                _log.write(self._level, line)
        return len(text)

    def finish(self):
        if self._rest:
            self.write("\n")


def _told(error):
    """The error in one line. The sources are not here, so that the traceback has places only."""
    places, traceback = [], error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.endswith("brine_entry.py"):
            places.append((code.co_filename.rpartition("/")[2], traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    text = f"{type(error).__name__}: {error}"
    if _log is not None:
        lines = [f'  File "{file}", line {line}, in {name}' for file, line, name in places]
        for line in ["Traceback (most recent call last):", *lines, *text.split("\n")]:
            _log.write(_log.Level.ERROR, line)
    if places:
        text += " ({}, line {})".format(*places[-1][:2])
    return Err(text)


if _log is None:
    _out = _err = _Lines(None)
else:
    _out, _err = _Lines(_log.Level.INFO), _Lines(_log.Level.WARNING)
_inside = False


def _guarded(function):
    @functools.wraps(function)
    def call(*args):
        global _inside
        # One export may call another: the outermost tells.
        if _inside:
            return function(*args)
        _inside = True
        # Not before: while the module is built there is no log.
        sys.stdout, sys.stderr = _out, _err
        try:
            return function(*args)
        except Err:
            raise
        except Exception as error:
            raise _told(error) from None
        finally:
            _inside = False
            _out.finish()
            _err.finish()

    return call


for _name in CLASSES:
    _class = vars(module).get(_name)
    if isinstance(_class, type) and _class.__module__ == "module":
        for _method, _function in list(vars(_class).items()):
            if type(_function).__name__ == "function" and not _method.startswith("_"):
                setattr(_class, _method, _guarded(_function))
