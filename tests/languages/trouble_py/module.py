import wit_world
from componentize_py_types import Err
from wit_world.imports.state_types import StateResult
from wit_world.imports.types import Data


class WitWorld(wit_world.WitWorld):
    def make(self, what):
        if what == "raises":
            return {}["a key"]
        if what == "fails":
            raise Err("as it says")
        print("printed", what)
        return "done"


class States:
    def made(self, name, more):
        comment = WitWorld().make(name)
        # An empty dict in MessagePack.
        changes = Data(b"\x80") if more is None else more
        return StateResult(result=True, comment=comment, changes=changes, warnings=[])
