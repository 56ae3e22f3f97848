"""Fills a redis server, frees half of the keys at random, and fills it again with longer values.

usage: refill.py PORT [KEYS]

Prints "requests per second: N" and "used memory: BYTES", which the server counts itself.
"""
import random
import socket
import sys
import time

PORT, KEYS = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200_000
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
    server.all([command(b"SET", key, b"x" * chance.randint(30, 250)) for key in keys])
    chance.shuffle(keys)
    gone = keys[:KEYS // 2]
    server.all([command(b"DEL", key) for key in gone])
    server.all([command(b"SET", key, b"y" * chance.randint(250, 500)) for key in gone[:KEYS // 3]])
    print(f"requests per second: {(KEYS + KEYS // 2 + KEYS // 3) / (time.monotonic() - begin):.0f}")
    used = next(line for line in server.text(b"INFO", b"memory").splitlines() if line.startswith("used_memory:"))
    print(f"used memory: {used.split(':')[1]}")


main()
