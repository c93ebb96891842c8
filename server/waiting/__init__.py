"""Clients that wait for keys, and who of them is served next.

A blocking command that finds nothing returns ``Parked``: the keys, the deadline, the request to run
again, the reply at the timeout, and an ``Interest``, which says what is waited for. The client is a
``Waiter`` from then on. It stands in a ``Line`` at each of its keys, with all who wait for the same
kind of thing there. When a key becomes ready, its ``Queue``, which holds the lines, is noted, and
after the command at hand each of the lines says who may be served. Their requests are run again
(``server.dispatch.serving``); one that finds nothing again goes to the end of its lines, and keeps
its deadline.

This room knows no type. A kind of waiting is an interest and a line, and lies beside the commands
that wait in this way:

- ``SharedLine``: what one client is given, the others may be given, too. All who may be served are
  run, in order of arrival. Finding them costs as much as they are, however many stay asleep.
  Readers of streams wait in this way (``commands/streams/waiting.py``).
- ``ExclusiveLine``: what one client is given, nobody else is. Those who wait are run one by one
  while there is something to give, and whoever has left is passed over. With one element and a
  crowd that waits, one request is run. Readers of a consumer group wait in this way
  (``commands/streams/group_waiting.py``). ``elements.ElementOf`` is the plain case: the first who
  came is run while the key holds a collection.

A type that has elements to give needs no more than this:

    ELEMENT = ElementOf(b"list", List)

    @command("BLPOP", arity=-3, flags=WRITE | BLOCKING, keys=...)
    def blpop(call: Call) -> object:
        ...  # the first key that holds a list: take an element and return it
        if not call.may_block:
            return NULL_ARRAY
        return Parked(keys, deadline_ms, call.argv, NULL_ARRAY, ELEMENT)

Say that three clients wait for ``k``, the second one for ``j``, too:

    j: list [second]
    k: list [first, second, third]

RPUSH k a b makes ``k`` ready. The line yields ``first``, which is run, takes ``a`` and leaves. The
list is not empty, so ``second`` is run, takes ``b`` and leaves both lines: nobody waits for ``j``
any more. The list is gone now. ``third`` is not run. A SET, or an XADD, leaves it asleep as well:
no list is there. A line whose interest says that it ``needs_key`` yields its waiters even then:
they get the error that what they wait for is gone.

Time alone may make something ready: a line that ``ripens`` is asked for alarms, the moments at
which it is to be looked at though nothing happens to its key.

A client that waits is seen through ``Sleeper``, which sessions implement.
"""
