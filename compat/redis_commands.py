"""The commands of Redis, by the chapter of its manual, each with the version that brought it.

As COMMAND DOCS of Redis 8.10 lists them. Of containers, such as XINFO, the subcommands stand here.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "8.10"
COMMANDS: Final[dict[str, str]] = {
    "array": """
        arcount@8.8.0 ardel@8.8.0 ardelrange@8.8.0 arget@8.8.0 argetrange@8.8.0 argrep@8.8.0
        arinfo@8.8.0 arinsert@8.8.0 arlastitems@8.8.0 arlen@8.8.0 armget@8.8.0 armset@8.8.0
        arnext@8.8.0 arop@8.8.0 arring@8.8.0 arscan@8.8.0 arseek@8.8.0 arset@8.8.0
    """,
    "bitmap": """
        bitcount@2.6.0 bitfield@3.2.0 bitfield_ro@6.0.0 bitop@2.6.0 bitpos@2.8.7 getbit@2.2.0
        setbit@2.2.0
    """,
    "cluster": """
        asking@3.0.0 cluster|addslots@3.0.0 cluster|addslotsrange@7.0.0 cluster|bumpepoch@3.0.0
        cluster|count-failure-reports@3.0.0 cluster|countkeysinslot@3.0.0 cluster|delslots@3.0.0
        cluster|delslotsrange@7.0.0 cluster|failover@3.0.0 cluster|flushslots@3.0.0
        cluster|forget@3.0.0 cluster|getkeysinslot@3.0.0 cluster|help@5.0.0 cluster|info@3.0.0
        cluster|keyslot@3.0.0 cluster|links@7.0.0 cluster|meet@3.0.0 cluster|migration@8.4.0
        cluster|myid@3.0.0 cluster|myshardid@7.2.0 cluster|nodes@3.0.0 cluster|replicas@5.0.0
        cluster|replicate@3.0.0 cluster|reset@3.0.0 cluster|saveconfig@3.0.0
        cluster|set-config-epoch@3.0.0 cluster|setslot@3.0.0 cluster|shards@7.0.0
        cluster|slaves@3.0.0 cluster|slot-stats@8.2.0 cluster|slots@3.0.0
        cluster|syncslots@8.4.0 readonly@3.0.0 readwrite@3.0.0
    """,
    "connection": """
        auth@1.0.0 client|caching@6.0.0 client|getname@2.6.9 client|getredir@6.0.0
        client|help@5.0.0 client|id@5.0.0 client|info@6.2.0 client|kill@2.4.0 client|list@2.4.0
        client|no-evict@7.0.0 client|no-touch@7.2.0 client|pause@3.0.0 client|reply@3.2.0
        client|setinfo@7.2.0 client|setname@2.6.9 client|tracking@6.0.0
        client|trackinginfo@6.2.0 client|unblock@5.0.0 client|unpause@6.2.0 echo@1.0.0
        hello@6.0.0 ping@1.0.0 quit@1.0.0 reset@6.2.0 select@1.0.0
    """,
    "generic": """
        copy@6.2.0 del@1.0.0 dump@2.6.0 exists@1.0.0 expire@1.0.0 expireat@1.2.0
        expiretime@7.0.0 keys@1.0.0 migrate@2.6.0 move@1.0.0 object|encoding@2.2.3
        object|freq@4.0.0 object|help@6.2.0 object|idletime@2.2.3 object|refcount@2.2.3
        persist@2.2.0 pexpire@2.6.0 pexpireat@2.6.0 pexpiretime@7.0.0 pttl@2.6.0 randomkey@1.0.0
        rename@1.0.0 renamenx@1.0.0 restore@2.6.0 scan@2.8.0 sort@1.0.0 sort_ro@7.0.0
        touch@3.2.1 ttl@1.0.0 type@1.0.0 unlink@4.0.0 wait@3.0.0 waitaof@7.2.0
    """,
    "geo": """
        geoadd@3.2.0 geodist@3.2.0 geohash@3.2.0 geopos@3.2.0 georadius@3.2.0
        georadius_ro@3.2.10 georadiusbymember@3.2.0 georadiusbymember_ro@3.2.10 geosearch@6.2.0
        geosearchstore@6.2.0
    """,
    "hash": """
        hdel@2.0.0 hexists@2.0.0 hexpire@7.4.0 hexpireat@7.4.0 hexpiretime@7.4.0 hget@2.0.0
        hgetall@2.0.0 hgetdel@8.0.0 hgetex@8.0.0 himport|discard@8.10.0
        himport|discardall@8.10.0 himport|prepare@8.10.0 himport|set@8.10.0 hincrby@2.0.0
        hincrbyfloat@2.6.0 hkeys@2.0.0 hlen@2.0.0 hmget@2.0.0 hmset@2.0.0 hpersist@7.4.0
        hpexpire@7.4.0 hpexpireat@7.4.0 hpexpiretime@7.4.0 hpttl@7.4.0 hrandfield@6.2.0
        hscan@2.8.0 hset@2.0.0 hsetex@8.0.0 hsetnx@2.0.0 hstrlen@3.2.0 httl@7.4.0 hvals@2.0.0
    """,
    "hyperloglog": """
        pfadd@2.8.9 pfcount@2.8.9 pfdebug@2.8.9 pfmerge@2.8.9 pfselftest@2.8.9
    """,
    "list": """
        blmove@6.2.0 blmovem@8.10.0 blmpop@7.0.0 blpop@2.0.0 brpop@2.0.0 brpoplpush@2.2.0
        lindex@1.0.0 linsert@2.2.0 llen@1.0.0 lmove@6.2.0 lmovem@8.10.0 lmpop@7.0.0 lpop@1.0.0
        lpos@6.0.6 lpush@1.0.0 lpushx@2.2.0 lrange@1.0.0 lrem@1.0.0 lset@1.0.0 ltrim@1.0.0
        rpop@1.0.0 rpoplpush@1.2.0 rpush@1.0.0 rpushx@2.2.0
    """,
    "module": """
        vadd@8.0.0 vcard@8.0.0 vdim@8.0.0 vemb@8.0.0 vgetattr@8.0.0 vinfo@8.0.0 vismember@8.2.0
        vlinks@8.0.0 vrandmember@8.0.0 vrange@8.4.0 vrem@8.0.0 vsetattr@8.0.0 vsim@8.0.0
    """,
    "pubsub": """
        psubscribe@2.0.0 publish@2.0.0 pubsub|channels@2.8.0 pubsub|help@6.2.0
        pubsub|numpat@2.8.0 pubsub|numsub@2.8.0 pubsub|shardchannels@7.0.0
        pubsub|shardnumsub@7.0.0 punsubscribe@2.0.0 spublish@7.0.0 ssubscribe@7.0.0
        subscribe@2.0.0 sunsubscribe@7.0.0 unsubscribe@2.0.0
    """,
    "scripting": """
        eval@2.6.0 eval_ro@7.0.0 evalsha@2.6.0 evalsha_ro@7.0.0 fcall@7.0.0 fcall_ro@7.0.0
        function|delete@7.0.0 function|dump@7.0.0 function|flush@7.0.0 function|help@7.0.0
        function|kill@7.0.0 function|list@7.0.0 function|load@7.0.0 function|restore@7.0.0
        function|stats@7.0.0 script|debug@3.2.0 script|exists@2.6.0 script|flush@2.6.0
        script|help@5.0.0 script|kill@2.6.0 script|load@2.6.0
    """,
    "server": """
        acl|cat@6.0.0 acl|deluser@6.0.0 acl|dryrun@7.0.0 acl|genpass@6.0.0 acl|getuser@6.0.0
        acl|help@6.0.0 acl|list@6.0.0 acl|load@6.0.0 acl|log@6.0.0 acl|save@6.0.0
        acl|setuser@6.0.0 acl|users@6.0.0 acl|whoami@6.0.0 backup|abort@8.10.0
        backup|cleanup@8.10.0 backup|help@8.10.0 backup|list@8.10.0 backup|seal@8.10.0
        backup|start@8.10.0 backup|status@8.10.0 bgrewriteaof@1.0.0 bgsave@1.0.0
        command|count@2.8.13 command|docs@7.0.0 command|getkeys@2.8.13
        command|getkeysandflags@7.0.0 command|help@5.0.0 command|info@2.8.13 command|list@7.0.0
        config|get@2.0.0 config|help@5.0.0 config|resetstat@2.0.0 config|rewrite@2.8.0
        config|set@2.0.0 dbsize@1.0.0 debug@1.0.0 failover@6.2.0 flushall@1.0.0 flushdb@1.0.0
        hotkeys|get@8.6.0 hotkeys|help@8.6.1 hotkeys|reset@8.6.0 hotkeys|start@8.6.0
        hotkeys|stop@8.6.0 info@1.0.0 lastsave@1.0.0 latency|doctor@2.8.13 latency|graph@2.8.13
        latency|help@2.8.13 latency|histogram@7.0.0 latency|history@2.8.13 latency|latest@2.8.13
        latency|reset@2.8.13 lolwut@5.0.0 memory|doctor@4.0.0 memory|help@4.0.0
        memory|malloc-stats@4.0.0 memory|purge@4.0.0 memory|stats@4.0.0 memory|usage@4.0.0
        module|help@5.0.0 module|list@4.0.0 module|load@4.0.0 module|loadex@7.0.0
        module|unload@4.0.0 monitor@1.0.0 psync@2.8.0 replconf@3.0.0 replicaof@5.0.0
        restore-asking@3.0.0 role@2.8.12 save@1.0.0 shutdown@1.0.0 slaveof@1.0.0
        slowlog|get@2.2.12 slowlog|help@6.2.0 slowlog|len@2.2.12 slowlog|reset@2.2.12
        swapdb@4.0.0 sync@1.0.0 time@2.6.0 trimslots@8.4.0
    """,
    "set": """
        sadd@1.0.0 scard@1.0.0 sdiff@1.0.0 sdiffcard@8.10.0 sdiffstore@1.0.0 sinter@1.0.0
        sintercard@7.0.0 sinterstore@1.0.0 sismember@1.0.0 smembers@1.0.0 smismember@6.2.0
        smove@1.0.0 spop@1.0.0 srandmember@1.0.0 srem@1.0.0 sscan@2.8.0 sunion@1.0.0
        sunioncard@8.10.0 sunionstore@1.0.0
    """,
    "sorted-set": """
        bzmpop@7.0.0 bzpopmax@5.0.0 bzpopmin@5.0.0 zadd@1.2.0 zcard@1.2.0 zcount@2.0.0
        zdiff@6.2.0 zdiffstore@6.2.0 zincrby@1.2.0 zinter@6.2.0 zintercard@7.0.0
        zinterstore@2.0.0 zlexcount@2.8.9 zmpop@7.0.0 zmscore@6.2.0 zpopmax@5.0.0 zpopmin@5.0.0
        zrandmember@6.2.0 zrange@1.2.0 zrangebylex@2.8.9 zrangebyscore@1.0.5 zrangestore@6.2.0
        zrank@2.0.0 zrem@1.2.0 zremrangebylex@2.8.9 zremrangebyrank@2.0.0 zremrangebyscore@1.2.0
        zrevrange@1.2.0 zrevrangebylex@2.8.9 zrevrangebyscore@2.2.0 zrevrank@2.0.0 zscan@2.8.0
        zscore@1.2.0 zunion@6.2.0 zunionstore@2.0.0
    """,
    "stream": """
        xack@5.0.0 xackdel@8.2.0 xadd@5.0.0 xautoclaim@6.2.0 xcfgset@8.6.0 xclaim@5.0.0
        xdel@5.0.0 xdelex@8.2.0 xgroup|create@5.0.0 xgroup|createconsumer@6.2.0
        xgroup|delconsumer@5.0.0 xgroup|destroy@5.0.0 xgroup|help@5.0.0 xgroup|setid@5.0.0
        xidmprecord@8.6.2 xinfo|consumers@5.0.0 xinfo|groups@5.0.0 xinfo|help@5.0.0
        xinfo|stream@5.0.0 xlen@5.0.0 xnack@8.8.0 xpending@5.0.0 xrange@5.0.0 xread@5.0.0
        xreadgroup@5.0.0 xrevrange@5.0.0 xsetid@5.0.0 xtrim@5.0.0
    """,
    "string": """
        append@2.0.0 decr@1.0.0 decrby@1.0.0 delex@8.4.0 digest@8.4.0 get@1.0.0 getdel@6.2.0
        getex@6.2.0 getrange@2.4.0 getset@1.0.0 incr@1.0.0 incrby@1.0.0 incrbyfloat@2.6.0
        increx@8.8.0 lcs@7.0.0 mget@1.0.0 mset@1.0.1 msetex@8.4.0 msetnx@1.0.1 psetex@2.6.0
        set@1.0.0 setex@2.0.0 setnx@1.0.0 setrange@2.2.0 strlen@2.2.0 substr@1.0.0
    """,
    "transactions": """
        discard@2.0.0 exec@1.2.0 multi@1.2.0 unwatch@2.2.0 watch@2.2.0
    """,
}


def commands(chapter: str) -> list[tuple[str, str]]:
    """Return the commands of a chapter, by name, and the version that brought each."""
    found = []
    for word in COMMANDS[chapter].split():
        name, _, since = word.partition("@")
        found.append((name, since))
    return found
