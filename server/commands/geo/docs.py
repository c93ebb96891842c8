"""Documentation of the commands on places."""

from __future__ import annotations

from typing import Final

from headrace.compat.doc_notation import Doc

_GROUP: Final = "geo"
_COST: Final = "O(N + log M) for N members in the boxes around, of M"
_UNIT: Final = "unit(M | KM | FT | MI)"
_MORE: Final = "[WITHCOORD] [WITHDIST] [WITHHASH]"
_COUNT: Final = "[count-block(COUNT=count:integer [ANY{0}])]"
_ORDER: Final = "[order(ASC | DESC)]"
_STORE: Final = "[store(STORE=storekey:key#1<key> | STOREDIST=storedistkey:key#2<key>)]"
_PLACE: Final = "key longitude:double latitude:double radius:double " + _UNIT
_MEMBER: Final = "key member radius:double " + _UNIT
_AREA: Final = (
    "from(FROMMEMBER=member | FROMLONLAT=fromlonlat(longitude:double latitude:double))"
    f" by(circle(BYRADIUS=radius:double {_UNIT})"
    f" | box(BYBOX=width:double height:double {_UNIT}))"
)
_ANY_ADDED: Final = ("6.2.0", "ANY option of COUNT.")

DOCS: Final[dict[str, Doc]] = {
    "geoadd": Doc(
        _GROUP,
        "3.2.0",
        "O(log N) for each member, of N",
        "Adds members with places, or moves them.",
        "key [condition(NX | XX)@6.2.0] ['CH'=change@6.2.0]"
        " data(longitude:double latitude:double member)...",
        history=(("6.2.0", "CH, NX and XX options."),),
    ),
    "geodist": Doc(
        _GROUP,
        "3.2.0",
        "O(1)",
        "Tells how far it is from one member to another.",
        f"key member1 member2 [{_UNIT}]",
    ),
    "geohash": Doc(
        _GROUP,
        "3.2.0",
        "O(1) for each member",
        "Reads the places of members as geohashes.",
        "key [member...]",
    ),
    "geopos": Doc(
        _GROUP, "3.2.0", "O(1) for each member", "Reads the places of members.", "key [member...]"
    ),
    "georadius": Doc(
        _GROUP,
        "3.2.0",
        _COST,
        "Finds members near a place, and may store them.",
        f"{_PLACE} {_MORE} {_COUNT.format('@6.2.0')} {_ORDER} {_STORE}",
        history=(_ANY_ADDED,),
        deprecated_since="6.2.0",
        replaced_by="`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
    ),
    "georadius_ro": Doc(
        _GROUP,
        "3.2.10",
        _COST,
        "Finds members near a place.",
        f"{_PLACE} {_MORE} {_COUNT.format('@6.2.0')} {_ORDER}",
        history=(_ANY_ADDED,),
        deprecated_since="6.2.0",
        replaced_by="`GEOSEARCH` with the `BYRADIUS` argument",
    ),
    "georadiusbymember": Doc(
        _GROUP,
        "3.2.0",
        _COST,
        "Finds members near one of them, and may store them.",
        f"{_MEMBER} {_MORE} {_COUNT.format('')} {_ORDER} {_STORE}",
        history=(_ANY_ADDED,),
        deprecated_since="6.2.0",
        replaced_by="`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER`"
        " arguments",
    ),
    "georadiusbymember_ro": Doc(
        _GROUP,
        "3.2.10",
        _COST,
        "Finds members near one of them.",
        f"{_MEMBER} {_MORE} {_COUNT.format('')} {_ORDER}",
        deprecated_since="6.2.0",
        replaced_by="`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
    ),
    "geosearch": Doc(
        _GROUP,
        "6.2.0",
        _COST,
        "Finds members in a circle or a box.",
        f"key {_AREA} {_ORDER} {_COUNT.format('')} {_MORE}",
    ),
    "geosearchstore": Doc(
        _GROUP,
        "6.2.0",
        _COST,
        "Stores the members that are found in a circle or a box.",
        f"destination:key source:key#1 {_AREA} {_ORDER} {_COUNT.format('')} [STOREDIST]",
    ),
}
