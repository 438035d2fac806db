#!/usr/bin/env bash
# A SuperLink and four SuperNodes on this machine, with their logs in .local/:
#   local.sh up [tls]    start them (tls: encrypted, and every SuperNode has a key)
#   local.sh kill N      kill -9 SuperNode N
#   local.sh start N     start it again
#   local.sh down        stop everything
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export FLWR_HOME=$PWD/.local/flwr FLWR_TELEMETRY_ENABLED=0
NODES=4 PORT=${PORT:-8000}
mkdir -p .local/flwr

run() { # name command…: in the background, in a session of its own
  local name=$1
  shift
  setsid "$@" >>".local/$name.log" 2>&1 </dev/null &
  echo $! >".local/$name.pid"
}

start() {
  local line=(--insecure)
  [ -e .local/tls ] && line=(--root-certificates .local/ca.crt
    --auth-supernode-private-key ".local/key-$1")
  run "node-$1" flower-supernode "${line[@]}" --superlink "127.0.0.1:$PORT" \
    --port $((PORT + 1101 + $1)) --node-config "partition-id=$1 num-partitions=$NODES"
}

end() { # signal name: the process and what it has started
  local pid
  [ -e ".local/$2.pid" ] || return 0
  pid=$(<".local/$2.pid")
  kill "-$1" -- "-$pid" 2>/dev/null || true
  rm ".local/$2.pid"
}

certificates() { # an authority, a certificate for the SuperLink, and a key for each SuperNode
  (
    cd .local
    openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj "/CN=turnout example" \
      -keyout ca.key -out ca.crt
    openssl req -newkey rsa:2048 -nodes -subj "/CN=localhost" -keyout server.key -out server.csr
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' >server.ext
    openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 \
      -extfile server.ext -out server.pem
    for n in $(seq 0 $((NODES - 1))); do
      ssh-keygen -q -t ecdsa -b 384 -N "" -C "" -f "key-$n"
    done
  ) >.local/certificates.log 2>&1
}

up() {
  local superlink=(--insecure) connection="insecure = true"
  rm -f .local/tls
  if [ "${1:-}" = tls ]; then
    touch .local/tls
    [ -e .local/key-0 ] || certificates
    superlink=(--ssl-ca-certfile .local/ca.crt --ssl-certfile .local/server.pem
      --ssl-keyfile .local/server.key --enable-supernode-auth)
    connection="root-certificates = \"$PWD/.local/ca.crt\""
  fi
  printf '[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:%s"\n%s\n' \
    "$PORT" "$connection" >.local/flwr/config.toml
  run superlink flower-superlink "${superlink[@]}" --port "$PORT" \
    --disable-runtime-dependency-installation
  for _ in $(seq 150); do
    (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && break
    sleep 0.2
  done
  for n in $(seq 0 $((NODES - 1))); do
    if [ -e .local/tls ]; then
      flwr supernode register ".local/key-$n.pub" here --name "$n" >>.local/register.log
    fi
    start "$n"
  done
  echo "A SuperLink and $NODES SuperNodes are up; logs are in examples/flower/.local"
}

case "${1:-}" in
up) up "${2:-}" ;;
start) start "$2" ;;
kill) end KILL "node-$2" ;;
down)
  for n in $(seq 0 $((NODES - 1))); do end TERM "node-$n"; done
  end TERM superlink
  ;;
*) sed -n '2,6p' "$0" ;;
esac
