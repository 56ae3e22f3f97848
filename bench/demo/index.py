"""A program of the everyday kind: reads records, indexes them, sorts, writes JSON. Prints a digest of the result."""
import hashlib
import json
import random

random.seed(1)
words = ["".join(random.choices("abcdefghijklmnop", k=random.randint(3, 12))) for _ in range(30_000)]
digest = hashlib.sha256()
for _ in range(2):
    index = {}
    for number in range(200_000):
        word = words[random.randrange(len(words))]
        index.setdefault(word, []).append({"line": number, "text": f"{word} at {number}"})
    top = sorted(index.items(), key=lambda item: (-len(item[1]), item[0]))[:5000]
    digest.update(json.dumps(json.loads(json.dumps(top))).encode())
print(digest.hexdigest())
