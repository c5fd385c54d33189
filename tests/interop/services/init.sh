# A service of an init script: a daemon that sleeps. And a script that fails.
set -eu
rm -rf /run/systemd
cat > /etc/init.d/brined <<'SCRIPT'
#!/bin/sh
### BEGIN INIT INFO
# Provides:          brined
# Required-Start:
# Required-Stop:
# Default-Start:     2 3 4 5
# Default-Stop:      0 1 6
# Short-Description: a service to try
### END INIT INFO
pid=/run/brined.pid
runs() { [ -f $pid ] && kill -0 "$(cat $pid)" 2>/dev/null; }
start() { start-stop-daemon --start --background --make-pidfile --pidfile $pid --exec /bin/sleep -- 600; }
stop() { ! runs || kill "$(cat $pid)"; rm -f $pid; }
echo "$1" >> /var/log/brined
case $1 in
  start) runs || start ;;
  stop) stop ;;
  restart) stop; start ;;
  reload | force-reload) runs ;;
  status) runs ;;
esac
SCRIPT
printf '#!/bin/sh\nexit 1\n' > /etc/init.d/brine-bad
chmod 755 /etc/init.d/brined /etc/init.d/brine-bad
ln -s ../init.d/brined /etc/rc2.d/S01brined
ln -s ../init.d/brined /etc/rcS.d/S01brined
