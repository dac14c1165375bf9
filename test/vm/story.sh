# Told inside the emulated machine by systemd. Each line of the story says whether it is true.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root SQUAD_DATA=/var/lib/squad

is() { # is NAME WANT GOT: got must have want in it
  case "$3" in *"$2"*) echo "ok $1" ;; *) echo "not ok $1: $3" ;; esac
}
ready() { for _ in $(seq 90); do curl -sf http://127.0.0.1:7777/readyz >/dev/null && return; sleep 1; done; }
field() { grep -o "\"$1\": *\"[^\"]*\"" | head -1 | cut -d'"' -f4; }
limits() { # limits NAME COMMAND…: the tests of limits, run in a cgroup by this command
  said=$("${@:2}" env GVISOR_TEST_ENVD=/opt/envd /opt/gvisor.test -test.v -test.parallel 1 -test.run 'TestLimits_(MemoryHog|ProcessorHog|ForkBomb)|TestCgroup_SandboxIsInside' 2>&1)
  is "$1: all four limits hold, and none was left out" 4 "$(echo "$said" | grep -c '^--- PASS')"
}

echo "# $(systemctl --version | head -1), Linux $(uname -r), $(stat -fc %T /sys/fs/cgroup)"
systemctl start squad
ready
is "the unit of deploy/ runs" active "$(systemctl is-active squad)"
is "doctor sees cgroups" "cgroup v2" "$(squad doctor 2>&1 | grep 'isolation: limits')"
squad squads create demo >/dev/null
box=$(squad sandbox create --squad demo --json)
id=$(echo "$box" | field id)
dir=$(echo /sys/fs/cgroup/squad-*/"$(echo "$box" | field e2b_id)")
is "a sandbox has its processors" "200000 100000" "$(cat "$dir/cpu.max" 2>&1)"
is "its memory" $(((2048 + 160) << 20)) "$(cat "$dir/memory.max" 2>&1)"
is "its processes" 9216 "$(cat "$dir/pids.max" 2>&1)"
squad sandbox exec "$id" 'sleep 1000 >/dev/null 2>&1 & echo $! > /tmp/pid'
systemctl restart squad
ready
is "it outlives a restart of the service" alive "$(squad sandbox exec "$id" 'kill -0 $(cat /tmp/pid) && echo alive' 2>&1)"
kill -9 "$(systemctl show squad -p MainPID --value)"
sleep 4
ready
is "and a kill -9 of the server" alive "$(squad sandbox exec "$id" 'kill -0 $(cat /tmp/pid) && echo alive' 2>&1)"
is "systemd started that again" 1 "$(systemctl show squad -p NRestarts --value)"
squad sandbox kill "$id" >/dev/null
systemctl stop squad
squad sandbox kill --all >/dev/null 2>&1
is "nothing is left of it" "none" "$(ls -d /sys/fs/cgroup/squad* 2>/dev/null || echo none)"

limits "root in a session" systemd-run -q --scope bash -c '"$@"; exit' bash
useradd -m -s /bin/bash u
loginctl enable-linger u
sleep 10
limits "a user with a scope of his own" runuser -u u -- env HOME=/home/u XDG_RUNTIME_DIR=/run/user/1000 \
  systemd-run -q --user --scope -p Delegate=yes
is "a user in a session is told" "not alone" "$(systemd-run -q --scope --uid=u bash -c 'HOME=/home/u squad doctor --data /home/u/d 2>&1 | grep limits; true')"
echo "# the end"
systemctl poweroff --force --force
