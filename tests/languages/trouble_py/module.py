import wit_world
from componentize_py_types import Err


class WitWorld(wit_world.WitWorld):
    def make(self, what):
        if what == "raises":
            return {}["a key"]
        if what == "fails":
            raise Err("as it says")
        print("printed", what)
        return "done"
