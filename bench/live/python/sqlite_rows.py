"""Fills a database in memory, and keeps what it reads from it in several forms."""
import sqlite3
import sys

db = sqlite3.connect(":memory:")
db.executescript("create table orders(id integer primary key, name text, note text, blob blob); create index by_name on orders(name);")
for number in range(20_000):
    db.execute("insert into orders(name, note, blob) values(?, ?, ?)", (f"name{number % 997}", "n" * 300, b"x" * 900))
db.commit()


def rows():
    return db.execute("select name, note, blob from orders").fetchall()


def by_name():
    return {name: note * 20 for name, note in db.execute("select name, note from orders group by name")}


def longer():
    return [blob * 5 for (blob,) in db.execute("select blob from orders limit 3000")]


def dump():
    return "\n".join(db.iterdump())


kept = [rows(), by_name(), longer(), dump()]
kept.append({i: bytes(600 + i % 100) for i in range(5000)})
kept.append([f"x{i}" * 300 for i in range(3000)])
kept.append([row[2] + b"tail" for row in kept[0]])
kept.append(list(range(300_000)))
kept.append(dict.fromkeys(range(100_000)))
kept.append(bytearray(1_500_000))
kept.append(tuple(range(200_000)))
print("ready", flush=True)
sys.stdin.readline()
