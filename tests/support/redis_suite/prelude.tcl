# What we change in Redis's test client before it runs a unit, so that one mistake hides no others.
#
# Code that stands between tests is run command by command, and goes on after an error, which is
# told as `between`. What is told comes as one line: a status, the text in hexadecimal digits.

proc send_data_packet {channel status data {elapsed 0}} {
    puts $channel "$status [binary encode hex [encoding convertto utf-8 $data]]"
    flush $channel
}

proc go_on {code} {
    if {$::cur_test ne ""} { # a test fails with its first error
        return [uplevel 1 $code]
    }
    set command ""
    foreach line [split $code "\n"] {
        append command $line "\n"
        if {[info complete $command]} {
            if {[catch {uplevel 1 $command} error]} {
                send_data_packet $::test_server_fd between $error
            }
            set command ""
        }
    }
}

rename start_server start_whole_server
proc start_server {options {code undefined}} {
    set held $::tags
    if {[catch {uplevel 1 [list start_whole_server $options [list go_on $code]]} error caught]} {
        set ::tags $held
        return -options $caught $error
    }
}

rename tags whole_tags
proc tags {names code} {
    uplevel 1 [list whole_tags $names [list go_on $code]]
}

# A test that has failed may have left a transaction open, or replies that nobody reads.
rename test whole_test
proc test {name code {okpattern undefined} {tags {}}} {
    set failed $::num_failed
    uplevel 1 [list whole_test $name $code $okpattern $tags]
    if {$::num_failed > $failed} {catch reconnect}
}

# What the server does not know is told, and the unit begins all the same.
rename run_external_server_test {}
proc run_external_server_test {code overrides} {
    set client [redis $::host $::port 0 $::tls]
    if {!$::singledb} {$client select 9}
    lappend ::servers [dict create host $::host port $::port client $client \
        config [dict create port $::port]]
    set kept [r config get *]
    catch {r function flush}
    catch {r script flush}
    set setup {flushall {config resetstat}}
    foreach {name value} $overrides {lappend setup [list config set $name $value]}
    foreach words $setup {
        if {[catch {r {*}$words} error]} {
            send_data_packet $::test_server_fd between "$words: $error"
        }
        if {[lrange $words 2 end] eq {appendonly yes}} {waitForBgrewriteaof r}
    }
    set failed [catch {uplevel 2 $code} result caught]
    foreach {name value} $kept {catch {r config set $name $value}}
    catch {[dict get [lindex $::servers end] client] close}
    set ::servers [lrange $::servers 0 end-1]
    if {$failed} {return -options $caught $result}
}

proc go_on_with {path} {
    set ::curfile $path
    set channel [open $path]
    set code [read $channel]
    close $channel
    uplevel 1 [list go_on $code]
}

# Units that Redis leaves out for external servers, although most of them need none of their own.
set ::run_whole {hash-field-expire maxmemory client-eviction obuf-limits}
rename tags_acceptable whole_tags_acceptable
proc tags_acceptable {names err_return} {
    upvar 1 $err_return error
    set unit [file rootname [file tail $::curfile]]
    if {$unit in $::run_whole && "needs:repl" ni $names} {
        set names [lsearch -all -inline -not -exact $names external:skip]
    }
    return [whole_tags_acceptable $names error]
}
