# A Redis server under load from many clients, until it is told to stop. What is measured is the whole tree of processes, clients included.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
redis-server --port 0 --unixsocket "$folder/socket" --save "" --dir "$folder" >"$folder/log" 2>&1 &
for _ in $(seq 200); do
  redis-cli -s "$folder/socket" ping >/dev/null 2>&1 && break
  sleep 0.02
done
for command in set,get lpush,rpop sadd,hset,zadd lrange_100; do
  redis-benchmark -s "$folder/socket" -n 30000 -c 20 -P 8 -r 20000 -d 200 -q -t "$command" >"$folder/report"
done
redis-cli -s "$folder/socket" shutdown nosave >/dev/null 2>&1 || true
wait
