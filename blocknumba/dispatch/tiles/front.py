"""Generated launchers of calls whose tiles are chosen: they find what was chosen by a key.

For `double[grid](x, out, BLOCK=bn.auto)`, once it was launched:

    def _launch(_grid, x=_missing, out=_missing, BLOCK=_missing, *_more, stream=None, **_others):
        if _more or _others or _type(x) is not _class_0 or ... _type(BLOCK) is not _class_2:
            return _link.following()(_grid, x, out, BLOCK, *_more, stream=stream, **_others)
        _key = (x.dtype, x.shape, ...)
        _known = _launches.get(_key)
        if _known is None:
            return _slowly(_key, _launches, _grid, x, out, BLOCK, ...)
        return _known(_grid, x=x, out=out, stream=stream)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocknumba.dispatch.compile.references import Named
from blocknumba.dispatch.launch import nested_calls
from blocknumba.dispatch.launch.launchers import Link
from blocknumba.dispatch.launch.driver import find_driver
from blocknumba.dispatch.launch.nested_calls import Front
from blocknumba.dispatch.tiles.auto import Auto
from blocknumba.dispatch.tune.key import key_expressions, key_scope, size_names

_TEXT = """\
def _launch({{parameters}}):
    try:
        if {{differs}}:
            return _link.following()({{same}})
        _key = ({key})
        _known = _launches.get(_key)
        if _known is None:
            return _slowly(_key, _launches, {{same}})
        return _known(_grid, {named}stream=stream{{options}})
    except _Exception as _error:
        _leave_out_our_frames(_error)
        raise
"""


def generate_front(kernel: Named, arguments: tuple, keywords: Mapping[str, object], link: Link,
                   first: Callable) -> Callable | None:
    """A launcher for calls with arguments like these; None if such have to be read each time.

    link: the next launcher.
    first: (key, launches, configuration, ...) launches a call that is not in launches yet.
    """
    signature = kernel.signature
    bound, changes = signature.bind(arguments, keywords)
    given = {**dict(zip(signature.positional_names, arguments)), **keywords}
    if (signature.rest or kernel.nested.has_parts(bound) or {*changes} & {*signature.names}
            or any(name.startswith("_") for name in signature.names)):
        return None
    passed = {name: type(value) for name, value in given.items() if type(value) is not Auto}
    key = key_expressions(find_driver(), signature, passed, size_names(passed), aligned=False)
    if key is None:
        return None
    named = "".join(f"{name}={name}, " for name in passed if name not in changes)
    template = _TEXT.format(key="".join(f"{text}, " for text in key), named=named)
    front = Front(signature, bound, {*given} - {*changes}, changes, template)
    return nested_calls.generate_front(front, signature, link, first, kernel._hooks,
                                       _launches={}, **key_scope(find_driver()))
