// A web server that keeps what it should forget: each page stays in the list of recent ones.
//
// usage: shop.js PORT    GET /CUSTOMER answers the customer's orders
const http = require("node:http");

const recentPages = [];

function ordersOf(customer) {
  return Array.from({ length: 200 }, (_, i) => ({ customer, item: `item ${i}`, price: i * 1.25, note: "x".repeat(40) }));
}

function pageFor(customer) {
  const page = Buffer.from(JSON.stringify(ordersOf(customer), null, 1));
  recentPages.push(page); // and nothing takes one out
  return page;
}

function handle(request, response) {
  response.end(pageFor(request.url));
}

http.createServer(handle).listen(Number(process.argv[2]), "127.0.0.1");
