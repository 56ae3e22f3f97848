"""Makes orders, writes them as JSON and reads them again, and keeps some of what it has made."""
import json
import random
import sys

random.seed(1)
kept = {}


def orders(n):
    return [{"id": i, "name": "n" * random.randint(600, 3000), "tags": ["t" * 700 for _ in range(3)]} for i in range(n)]


def index(of):
    by_name = {}
    for order in of:
        by_name.setdefault(order["name"][:620] + str(order["id"] % 500), []).append(order["id"])
    return by_name


for number in range(16):
    text = json.dumps(orders(3000))
    back = json.loads(text)
    kept["text", number % 5] = text
    kept["index", number % 3] = index(back)
    if number % 4 == 0:
        kept["back", number] = back
    kept["bytes", number] = bytearray(random.randint(100_000, 900_000))
    kept["upper", number % 7] = text.upper()
    kept["parts", number % 6] = [text[i:i + 5000] for i in range(0, len(text), 5000)]
    kept["set"] = set(range(number * 10_000))
    kept["list", number % 2] = list(range(200_000))
print("ready", flush=True)
sys.stdin.readline()
