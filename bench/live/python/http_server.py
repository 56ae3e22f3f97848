"""A threaded web server, asked by four threads of its own, that keeps something of each request."""
import json
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sessions, log, pages, bodies, headers, large, lists, views, texts = {}, [], {}, [], [], [], [], [], []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        number = int(self.path[1:])
        body = self.page(number)
        self.remember(number, body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def page(self, number):
        text = json.dumps({"number": number, "items": [f"item {i}" for i in range(300)]}, indent=1)
        pages[number % 400] = text
        return text.encode()

    def remember(self, number, body):
        bodies.append(body[:2000])
        sessions[number % 800] = bytearray(5000)
        log.append(f"{number} " + "x" * 900)
        if number % 10 == 0:
            large.append(bytes(60_000))
        headers.append(str(self.headers) * 8)
        if number % 7 == 0:
            lists.append(list(range(3000)))
        views.append(bytes(body[100:900]))
        texts.append(body.decode()[:3000])

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()


def client(first):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for number in range(first, first + 600):
        opener.open(f"http://127.0.0.1:{server.server_address[1]}/{number}").read()


clients = [threading.Thread(target=client, args=(600 * i,)) for i in range(4)]
for thread in clients:
    thread.start()
for thread in clients:
    thread.join()
server.shutdown()
print("ready", flush=True)
sys.stdin.readline()
