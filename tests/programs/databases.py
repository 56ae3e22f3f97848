"""Databases: one in a library, one server of one process that forks to save, one server of many processes."""
import glob
import os
import signal
import time

from harness import TIMEOUT, Failed, Missing, unprivileged_user


def sqlite3(side):
    side.need("sqlite3")
    side.input("rows.sql", ROWS=1_000_000 if side.full else 200_000)
    return side.call("sqlite3", "rows.db", ".read rows.sql")


def wait_until(what, ready, process=None):
    end = time.monotonic() + 60
    while not ready():
        if process is not None and process.poll() is not None:
            raise Failed(f"{what}: the server has ended with exit code {process.returncode}")
        if time.monotonic() > end:
            raise Failed(f"{what}: not within 60 s")
        time.sleep(0.05)


def redis(side):
    """Loads it from many clients, saves in a forked child while clients go on writing, and reads what was saved with a new server."""
    side.need("redis-server", "redis-benchmark", "redis-cli")

    def cli(*command, text=()):
        return side.call("redis-cli", "-s", "socket", *command, text=text, measured=False)

    def serve(*options):
        server = side.start(["redis-server", "--port", "0", "--unixsocket", "socket", "--save", "", "--dir", side.directory,
                             *options], side.log)
        wait_until("redis-server", lambda: os.path.exists(side.path("socket")), server)
        wait_until("redis-server", lambda: cli("ping").strip() == "PONG", server)
        side.must_run_on_ours(server)
        return server

    def stop(server):
        status = side.stop(server, signal.SIGTERM)
        if status != 0:
            raise Failed(f"redis-server ended with {side.describe(status)}")

    requests, keys = (200_000, 50_000) if side.full else (20_000, 10_000)
    server = serve()
    benchmark = ["redis-benchmark", "-s", "socket", "-n", str(requests), "-c", "20", "-P", "4", "-r", str(keys), "-d", "200", "-q"]
    side.call(*benchmark, "-t", "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset", measured=False)
    cli("FLUSHALL")
    out = cli("--pipe", text=(f"SET key:{i} {'v' * (i % 700)}{i}\r\n" for i in range(keys))).splitlines()[-1]
    out += "\n" + cli("EVAL", "local n = 0 for i = 0, 2000 do n = n + #redis.call('GET', 'key:' .. i) end return n", "0")
    cli("BGSAVE")
    side.call(*benchmark, "-t", "get,incr", measured=False)
    wait_until("BGSAVE", lambda: "rdb_bgsave_in_progress:0" in cli("INFO", "persistence"), server)
    if "rdb_last_bgsave_status:ok" not in cli("INFO", "persistence"):
        raise Failed("BGSAVE (a fork) failed")
    stop(server)
    if not os.path.exists(side.path("dump.rdb")):
        raise Failed("BGSAVE left no file")

    server = serve()
    names = sorted(line for line in cli("--scan").splitlines() if line.startswith("key:") and "__" not in line)
    out += f"{len(names)} keys after the restart, the last {names[-1]}\n" + cli("GET", f"key:{keys - 1}")
    stop(server)
    return out


def postgresql(side):
    """initdb, a server with its processes, pgbench; then the books must balance."""
    places = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not places:
        raise Missing("PostgreSQL is not installed")
    user = unprivileged_user()
    if user:
        os.chown(side.directory, user.pw_uid, user.pw_gid)

    def call(command, *arguments, measured=True):
        return side.call(os.path.join(places[-1], command), *arguments, user=user, measured=measured)

    def sql(query):
        return call("psql", "-h", side.directory, "-U", "tester", "-d", "postgres", "-Atc", query, measured=False)

    def bench(*arguments):
        return call("pgbench", "-h", side.directory, "-U", "tester", "-n", *arguments, "postgres")

    call("initdb", "-D", side.path("data"), "-U", "tester", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
    server = side.start([os.path.join(places[-1], "postgres"), "-D", side.path("data"), "-k", side.directory, "-c", "listen_addresses=",
                         "-c", "fsync=off", "-c", "shared_buffers=32MB"], side.log, user)
    wait_until("postgres", lambda: ready(places[-1], side, user), server)
    side.must_run_on_ours(server)
    bench("-i", "-s", "10" if side.full else "1", "-q")
    transactions = 4000 if side.full else 250
    report = bench("-t", str(transactions), "-c", "4", "-j", "2")
    if f"{4 * transactions}/{4 * transactions}" not in report:
        raise Failed("pgbench did not do all its transactions")
    out = sql("""select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history),
                        (select sum(tbalance) from pgbench_tellers) = (select sum(bbalance) from pgbench_branches),
                        (select count(*) from pgbench_history)""")
    out += sql("""select count(*), count(distinct md5(a.aid::text || b.aid)), max(length(string)) from pgbench_accounts a
                  join pgbench_accounts b on b.aid = 100001 - a.aid,
                  lateral (select string_agg(i::text, ',') string from generate_series(1, a.aid % 50) i) s""")
    status = side.stop(server, signal.SIGINT)
    if status != 0:
        raise Failed(f"postgres ended with {side.describe(status)}")
    return out


def ready(place, side, user):
    process = side.start([os.path.join(place, "pg_isready"), "-h", side.directory, "-q"], side.log, user, measured=False)
    return side.wait(process, TIMEOUT, measured=False) == 0
