"""Fills a redis server, frees half of the keys at random, and fills it again with longer values,
until these have as many bytes as the values that are gone had.

usage: refill.py PORT [KEYS [SHORTEST LONGEST]]

Values have from SHORTEST to LONGEST bytes, the longer ones from LONGEST to twice as many.

Prints "requests per second: N" and "used memory: BYTES", which the server counts itself.
"""
import random
import socket
import sys
import time

PORT, KEYS, SHORTEST, LONGEST = map(int, (sys.argv[1:] + ["200000", "100", "500"][len(sys.argv) - 2:])[:4])
AT_ONCE = 500  # commands that are sent before their answers are read


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


class Server:
    def __init__(self):
        self.connection = socket.create_connection(("127.0.0.1", PORT))
        self.answers = self.connection.makefile("rb")

    def all(self, commands):
        for begin in range(0, len(commands), AT_ONCE):
            some = commands[begin:begin + AT_ONCE]
            self.connection.sendall(b"".join(some))
            for _ in some:
                answer = self.answers.readline()
                assert answer[:1] in b"+:", answer

    def text(self, *words):
        self.connection.sendall(command(*words))
        return self.answers.read(int(self.answers.readline()[1:]) + 2).decode()


def main():
    chance = random.Random(1)
    server = Server()
    begin = time.monotonic()
    keys = [b"key:%08d" % i for i in range(KEYS)]
    lengths = {key: chance.randint(SHORTEST, LONGEST) for key in keys}
    server.all([command(b"SET", key, b"x" * length) for key, length in lengths.items()])
    chance.shuffle(keys)
    gone = keys[:KEYS // 2]
    server.all([command(b"DEL", key) for key in gone])
    longer, left = [], sum(lengths[key] for key in gone)
    while left > 0:
        longer.append(chance.randint(LONGEST, 2 * LONGEST))
        left -= longer[-1]
    server.all([command(b"SET", key, b"y" * length) for key, length in zip(gone, longer)])
    print(f"requests per second: {(KEYS + len(gone) + len(longer)) / (time.monotonic() - begin):.0f}")
    used = next(line for line in server.text(b"INFO", b"memory").splitlines() if line.startswith("used_memory:"))
    print(f"used memory: {used.split(':')[1]}")


main()
