"""A threaded web server that keeps what it should forget: each page stays in the list of recent ones.

usage: shop.py PORT    GET /CUSTOMER answers the customer's orders
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

recent_pages = []


def orders_of(customer):
    return [{"customer": customer, "item": f"item {i}", "price": i * 1.25, "note": "x" * 40} for i in range(200)]


def page_for(customer):
    page = json.dumps(orders_of(customer), indent=1)
    recent_pages.append(page)  # and nothing takes one out
    return page


class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        body = page_for(self.path).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Shop).serve_forever()
