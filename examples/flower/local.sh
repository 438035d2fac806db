#!/usr/bin/env bash
# A SuperLink and four SuperNodes on this machine, with their logs in .local/:
#   local.sh up              start them
#   local.sh up tls          the same with encryption, and a key for every SuperNode
#   local.sh up simulation   a SuperLink alone, which plays the SuperNodes itself (needs ray)
#   local.sh kill N          kill -9 SuperNode N
#   local.sh start N         start it again
#   local.sh kill server     kill -9 the ServerApp
#   local.sh down            stop everything
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# Flower's settings stay here, too, and not in the home directory.
export FLWR_HOME=$PWD/.local/flwr FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1
NODES=4 PORT=${PORT:-8000}
mkdir -p .local/flwr

fail() {
  echo "local.sh: $*" >&2
  exit 2
}

run() { # name command…: in the background, in a session of its own
  local name=$1
  shift
  setsid "$@" >>".local/$name.log" 2>&1 </dev/null &
  echo $! >".local/$name.pid"
}

alive() { # name: does what `run` started still run?
  [ -e ".local/$1.pid" ] && kill -0 -- "-$(<".local/$1.pid")" 2>/dev/null
}

start() {
  local line=(--insecure)
  [ -e .local/tls ] && line=(--root-certificates .local/ca.crt
    --auth-supernode-private-key ".local/key-$1")
  # A key that was in use a moment ago is refused until Flower has noticed its owner's death, within
  # a minute: hence some attempts.
  run "node-$1" bash -c 'for _ in {1..15}; do "$@" && break; sleep 5; done' node \
    flower-supernode "${line[@]}" --superlink "127.0.0.1:$PORT" \
    --port $((PORT + 1101 + $1)) --node-config "partition-id=$1 num-partitions=$NODES"
}

end() { # signal name: the process and what it has started
  alive "$2" && kill "-$1" -- "-$(<".local/$2.pid")" 2>/dev/null || true
  rm -f ".local/$2.pid"
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
  ) >.local/certificates.log 2>&1 || fail "no certificates; see .local/certificates.log"
}

up() {
  local superlink=(--insecure) connection="insecure = true"
  alive superlink && fail "already up; 'local.sh down' stops it"
  (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null &&
    fail "port $PORT is in use; 'PORT=18000 local.sh up' takes others"
  rm -f .local/tls .local/*.log
  case "$1" in
  "") ;;
  tls)
    [ -e .local/key-0 ] || certificates
    touch .local/tls
    superlink=(--ssl-ca-certfile .local/ca.crt --ssl-certfile .local/server.pem
      --ssl-keyfile .local/server.key --enable-supernode-auth)
    connection="root-certificates = \"$PWD/.local/ca.crt\""
    ;;
  simulation)
    python -c "import ray" 2>/dev/null || fail "simulation needs ray: pip install 'flwr[simulation]'"
    superlink+=(--simulation)
    ;;
  *) fail "'up $1' is not known; 'up', 'up tls' or 'up simulation'" ;;
  esac
  printf '[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:%s"\n%s\n' \
    "$PORT" "$connection" >.local/flwr/config.toml
  run superlink flower-superlink "${superlink[@]}" --port "$PORT" \
    --disable-runtime-dependency-installation
  for _ in $(seq 300); do
    (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && break
    alive superlink || fail "the SuperLink has ended; see .local/superlink.log"
    sleep 0.2
  done
  if [ "$1" = simulation ]; then
    echo "A SuperLink is up that simulates SuperNodes; its log is in .local/"
  else
    for n in $(seq 0 $((NODES - 1))); do
      if [ -e .local/tls ]; then
        flwr supernode register ".local/key-$n.pub" here --name "$n" >>.local/register.log
      fi
      start "$n"
    done
    echo "A SuperLink and $NODES SuperNodes are up; their logs are in .local/"
  fi
  echo "For flwr to find them: export FLWR_HOME=\"$FLWR_HOME\""
}

node() { # the number of a SuperNode, or a refusal
  [[ $1 =~ ^[0-9]+$ ]] && [ "$1" -lt $NODES ] || fail "SuperNode '$1' is not among 0 to $((NODES - 1))"
}

command -v flower-superlink >/dev/null || PATH=$PWD/../../.venv/bin:$PATH
command -v flower-superlink >/dev/null ||
  fail "Flower is not here; activate the environment that has it, or pip install 'turnout[flower]'"

case "${1:-}" in
up) up "${2:-}" ;;
start)
  node "${2:-}"
  alive "node-$2" && fail "SuperNode $2 is running"
  start "$2"
  ;;
kill)
  if [ "${2:-}" = server ]; then
    alive superlink || fail "the SuperLink is not running"
    # Its parent is the SuperLink's SuperExec, which runs in a session of its own.
    pkill -KILL -f flwr-serverapp -P "$(pgrep -d , -P "$(<.local/superlink.pid)")" ||
      fail "no ServerApp is running"
    exit 0
  fi
  node "${2:-}"
  alive "node-$2" || fail "SuperNode $2 is not running"
  end KILL "node-$2"
  ;;
down)
  for n in $(seq 0 $((NODES - 1))); do end TERM "node-$n"; done
  end TERM superlink
  for _ in $(seq 100); do # until what follows may use the port
    (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null || break
    sleep 0.2
  done
  ;;
*) sed -n '2,9s/^# \{0,1\}//p' "$0" ;;
esac
