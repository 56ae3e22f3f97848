// Worker threads that build, serialise, compress and pass on objects and buffers; the results are checked by digest.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto');
const zlib = require('zlib');

function work({ rounds, seed }) {
  const digest = crypto.createHash('sha256');
  for (let round = 0; round < rounds; ++round) {
    const objects = [];
    for (let i = 0; i < 20000; ++i) objects.push({ id: i, name: `object ${i} of ${seed}`, tags: [i % 7, i % 11, round] });
    const text = JSON.stringify(objects);
    const packed = zlib.deflateSync(Buffer.from(text));
    if (zlib.inflateSync(packed).toString() !== text) throw new Error('lost in compression');
    const map = new Map(JSON.parse(text).map((o) => [o.name, o]));
    digest.update(`${map.size} ${packed.length} `).update(crypto.scryptSync(text.slice(0, 100), 'salt', 32));
  }
  return digest.digest('hex');
}

if (isMainThread) {
  const rounds = Number(process.argv[2]) / 4;
  const results = [0, 1, 2, 3].map((seed) => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: { rounds, seed } });
    worker.on('message', resolve).on('error', reject);
  }));
  Promise.all(results).then((all) => console.log(all.join('\n')));
} else {
  parentPort.postMessage(work(workerData));
}
