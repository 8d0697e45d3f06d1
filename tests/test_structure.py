"""The structure of the package: no cycles of imports, rooms that one can oversee, no growth unseen."""

from structure import Source, Structure

STRUCTURE = Structure.of()
MAX_MODULES_OF_A_ROOM = 25
# What there is now, rounded up: whoever needs more says so here.
MAX_LINES, MAX_MODULES, MAX_STATEMENTS = 83_400, 502, 51_200


def test_modules_do_not_import_each_other():
    assert STRUCTURE.cycles == []


def test_rooms_can_be_overseen():
    sizes = {name: len(modules) for name, modules in STRUCTURE.rooms.items()}

    assert {name: size for name, size in sizes.items() if size > MAX_MODULES_OF_A_ROOM} == {}


def test_the_package_does_not_grow_unseen():
    ours = STRUCTURE.ours

    assert sum(module.lines for module in ours) <= MAX_LINES
    assert len(ours) <= MAX_MODULES
    assert sum(module.statements for module in ours) <= MAX_STATEMENTS


def test_a_cycle_is_found_even_of_imports_for_types_alone():
    def module(name, text):
        return Source(name, text, is_package=False)

    structure = Structure({
        "a.one": module("a.one", "from blocknumba.a import two"),
        "a.two": module("a.two", "if TYPE_CHECKING:\n    from blocknumba.a.three import x"),
        "a.three": module("a.three", "import blocknumba.a.one"),
        "a.four": module("a.four", "from blocknumba.a.one import x")})

    assert structure.cycles == [["a.one", "a.three", "a.two"]]
