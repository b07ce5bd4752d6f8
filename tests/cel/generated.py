"""Random expressions over a few variables of known types, for comparisons with other implementations of CEL.

Only what all of them have: the standard library, optional values, and the strings, math and encoders extensions.
"""

import random

VARIABLES = {
    "i": "int", "j": "int", "d": "double", "s": "string", "t": "string", "b": "bool", "y": "bytes",
    "at": "timestamp", "span": "duration", "ints": "list(int)", "texts": "list(string)", "m": "map(string, int)",
    "labels": "map(string, string)",
}  # fmt: skip
_TEXTS = ("", "a", "web-1", "é😀", "42", "-7", "1.5", "true", "a/b/c", "A b", "2024-02-29T01:02:03Z", "1h30m")
_KEYS = ("app", "zone", "none")
WORLD = {
    "int": (0, 1, -1, 2, 7, 100, 2**63 - 1, -(2**63), 2**53 + 1),
    "double": (0.0, -0.0, 1.5, -2.5, 3.0, 1e300, float("inf"), float("nan")),
    "string": _TEXTS,
    "bool": (False, True),
    "bytes": (b"", b"a", b"\xc3\xa9", b"\xff"),
    "timestamp": (0, 1709168523 * 10**9, 951782400123456000, -2208988800 * 10**9),
    "duration": (
        0,
        90 * 10**9,
        -1500000000,
        86400 * 10**9,
    ),
}
LITERALS = {
    "int": ("0", "1", "-1", "2", "3", "10", "9223372036854775807"),
    "uint": ("0u", "1u", "7u", "18446744073709551615u"),
    "double": ("0.0", "1.0", "-1.5", "2.5", "1e3"),
    "string": ("''", "'a'", "'web'", "'-'", "'é'", "'42'"),
    "bool": ("true", "false"),
    "bytes": ("b''", "b'a'", "b'\\xff'"),
    "timestamp": ("timestamp('2024-03-10T07:08:09Z')", "timestamp(0)"),
    "duration": (
        "duration('1h')",
        "duration('-90s')",
        "duration('1.5s')",
    ),
    "list(int)": ("[1, 2, 3]", "[7]", "[3, -1, 3]"),
    "list(string)": ("['a', 'b']", "['web']"),
    "map(string, int)": ("{'a': 1, 'b': 2}",),
    "map(string, string)": ("{'app': 'web'}",),
}
# what a type can be made of; §TYPE§ stands for an expression of that type
FORMS = {
    "int": (
        "(§int§ + §int§)", "(§int§ - §int§)", "(§int§ * §int§)", "(§int§ / §int§)", "(§int§ % §int§)", "-(§int§)",
        "size(§string§)", "§list(int)§.size()", "size(§map(string, int)§)", "int(§double§)", "int(§string§)", "int(§uint§)",
        "(§bool§ ? §int§ : §int§)", "§list(int)§[§int§]", "§map(string, int)§['a']", "§string§.indexOf(§string§)",
        "§timestamp§.getHours()", "§timestamp§.getDayOfWeek()", "§timestamp§.getFullYear('+02:00')", "§duration§.getMinutes()",
        "int(§timestamp§)", "math.greatest(§int§, §int§)", "math.least(§list(int)§)", "§string§.lastIndexOf(§string§)",
        "math.abs(§int§)", "math.bitAnd(§int§, §int§)", "§list(int)§.map(v, v * 2)[0]", "§list(int)§[?§int§].orValue(§int§)",
        "math.sign(§int§)",
    ),
    "uint": ("(§uint§ + §uint§)", "(§uint§ * §uint§)", "(§uint§ - §uint§)", "(§uint§ / §uint§)", "uint(§int§)", "uint(§double§)"),
    "double": (
        "(§double§ + §double§)", "(§double§ * §double§)", "(§double§ / §double§)", "(§double§ - §double§)", "-(§double§)",
        "double(§int§)", "double(§string§)", "double(§uint§)", "(§bool§ ? §double§ : §double§)", "math.ceil(§double§)",
        "math.round(§double§)", "math.trunc(§double§)",
    ),
    "string": (
        "(§string§ + §string§)", "(§bool§ ? §string§ : §string§)", "string(§int§)", "string(§uint§)", "string(§bool§)",
        "string(§bytes§)", "§list(string)§[§int§]", "§map(string, string)§['app']", "§string§.replace(§string§, §string§)",
        "§string§.substring(§int§)", "§string§.lowerAscii()", "§string§.upperAscii()", "§string§.trim()", "§string§.charAt(§int§)",
        "§list(string)§.join('-')", "§map(string, string)§[?'zone'].orValue(§string§)",
        "'%s!'.format([§string§])", "'%d'.format([§int§])",
    ),
    "bool": (
        "(§int§ == §int§)", "(§int§ < §int§)", "(§double§ <= §double§)", "(§double§ == §double§)", "(§string§ == §string§)",
        "(§string§ < §string§)", "(§uint§ > §uint§)", "(§bytes§ == §bytes§)", "(§bool§ && §bool§)", "(§bool§ || §bool§)",
        "!(§bool§)", "(§bool§ ? §bool§ : §bool§)", "§string§.startsWith(§string§)", "§string§.endsWith(§string§)",
        "§string§.contains(§string§)", "(§int§ in §list(int)§)", "(§string§ in §map(string, string)§)", "has(labels.app)",
        "§list(int)§.exists(v, v > §int§)", "§list(int)§.all(v, v / (v - 1) < §int§)", "§list(int)§.exists_one(v, v == §int§)",
        "§list(string)§.exists(w, w == §string§)", "(§timestamp§ < §timestamp§)", "(§duration§ == §duration§)",
        "§string§.matches('^[a-z]+-?[0-9]*$')", "(§list(int)§ == §list(int)§)", "(dyn(§int§) < §double§)",
        "(dyn(§int§) == §double§)",
        "(dyn(§string§) == §int§)", "(dyn(§int§) > 1 && §bool§)", "bool(§string§)", "math.isNaN(§double§)",
        "labels[?§string§].hasValue()", "(§map(string, int)§ == §map(string, int)§)", "labels.exists(k, k == §string§)",
        "(dyn(§uint§) == §int§)",
    ),
    "bytes": ("(§bytes§ + §bytes§)", "bytes(§string§)", "base64.decode(base64.encode(§bytes§))"),
    "timestamp": ("(§timestamp§ + §duration§)", "(§timestamp§ - §duration§)", "timestamp(s)", "timestamp(t)"),
    "duration": (
        "(§duration§ + §duration§)", "(§duration§ - §duration§)", "(§timestamp§ - §timestamp§)", "duration(s)", "duration(t)",
    ),
    "list(int)": (
        "(§list(int)§ + §list(int)§)", "§list(int)§.map(v, v + §int§)", "§list(int)§.filter(v, v != §int§)", "[§int§, §int§]",
        "§list(string)§.map(w, size(w))",
    ),
    "list(string)": ("§string§.split('-')", "§list(string)§.filter(w, w != §string§)", "[§string§]"),
    "map(string, int)": ("{'a': §int§, 'b': §int§}", "(§bool§ ? §map(string, int)§ : §map(string, int)§)"),
    "map(string, string)": ("labels", "{§string§: §string§}"),
}  # fmt: skip


def expression(rng, kind, depth, fits):
    """A random expression of the type."""
    names = [name for name, declared in VARIABLES.items() if declared == kind]
    if depth <= 0 or rng.random() < 0.15:
        return rng.choice(names) if names and rng.random() < 0.6 else rng.choice(list(filter(fits, LITERALS[kind])))
    parts = rng.choice(list(filter(fits, FORMS[kind])) or LITERALS[kind]).split("§")
    return "".join(expression(rng, part, depth - 1, fits) if place % 2 else part for place, part in enumerate(parts))


def values(rng):
    """Plain Python values of the variables; moments and durations in nanoseconds."""

    def value(kind):
        if kind.startswith("list("):
            return [value(kind[5:-1]) for _ in range(rng.randrange(4))]
        return rng.choice(WORLD[kind])

    made = {name: value(kind) for name, kind in VARIABLES.items() if not kind.startswith("map(")}
    made["m"] = {key: rng.choice((0, 1, 5)) for key in rng.sample(("a", "b", "c"), rng.randrange(4))}
    made["labels"] = {key: rng.choice(_TEXTS) for key in rng.sample(_KEYS, rng.randrange(4))}
    return made


def cases(seed, count, fits=lambda _: True):
    """Expressions with values of the variables; of forms and literals that fit."""
    rng = random.Random(seed)  # noqa: S311 - the same cases in every run
    for _ in range(count):
        yield expression(rng, rng.choice(tuple(FORMS)), rng.choice((1, 2, 3, 3, 4)), fits), values(rng)
