# A host where systemd seems to run: a systemctl that keeps what it is told in files, and units for it.
set -eu
mkdir -p /run/systemd/system /run/units
cat > /usr/bin/systemctl <<'SCRIPT'
#!/bin/sh
echo "$*" >> /run/systemctl.log
action= unit= value=
for word; do
  case $word in
    --version) echo "systemd 252 (252.1)"; exit ;;
    -P) value=1 ;;
    -n | 0 | Id) ;;
    -*) ;;
    *) if [ -z "$action" ]; then action=$word; else unit=$word; fi ;;
  esac
done
own=/etc/systemd/system/$unit
there() { [ -e "/usr/lib/systemd/system/$unit" ] || [ -L "$own" ] || [ -e "$own" ]; }
masked() { [ "$(readlink "$own")" = /dev/null ]; }
active() { [ -e "/run/units/$unit" ]; }
fail() { echo "$2" >&2; exit "$1"; }
able() {
  there || fail 5 "Failed to $action $unit: Unit $unit not found."
  ! masked || fail 1 "Failed to $action $unit: Unit $unit is masked."
  [ "$unit" != bad.service ] || fail 1 "Job for $unit failed because the control process exited with error code."
}
case $action in
  '') ;;
  status) there || fail 4 "Unit $unit could not be found."; active || exit 3 ;;
  is-active) if active; then echo active; else echo inactive; exit 3; fi ;;
  is-enabled)
    if masked; then echo masked; exit 1; fi
    if [ -e "/etc/systemd/system/multi-user.target.wants/$unit" ]; then echo enabled; else echo disabled; exit 1; fi ;;
  start | restart) able; touch "/run/units/$unit" ;;
  reload | force-reload) able; active || fail 1 "$unit is not active, cannot reload." ;;
  stop) there || fail 5 "Failed to stop $unit: Unit $unit not loaded."; [ "$unit" = stays.service ] || rm -f "/run/units/$unit" ;;
  enable)
    there || fail 1 "Failed to enable unit: Unit file $unit does not exist."
    mkdir -p /etc/systemd/system/multi-user.target.wants
    ln -sf "/usr/lib/systemd/system/$unit" /etc/systemd/system/multi-user.target.wants/ ;;
  disable) rm -f "/etc/systemd/system/multi-user.target.wants/$unit" ;;
  mask)
    if [ -e "$own" ] && [ ! -L "$own" ]; then echo "Failed to mask unit: File $own already exists."; exit 1; fi
    ln -sf /dev/null "$own" ;;
  unmask) rm -f "$own" ;;
  show) if [ -n "$value" ]; then echo "$unit"; else printf 'Id=%s\nAfter=a.target b.target\nExecStart={ path=/bin/x ; argv[]=/bin/x -d }\n' "$unit"; fi ;;
  list-unit-files) printf 'one.service enabled enabled\ntwo.socket disabled enabled\nthree.service static -\n' ;;
  daemon-reload) ;;
esac
SCRIPT
printf '#!/bin/sh\nshift\nexec "$@"\n' > /usr/bin/systemd-run
chmod 755 /usr/bin/systemctl /usr/bin/systemd-run
for unit in one two bad stays; do echo '[Service]' > /usr/lib/systemd/system/$unit.service; done
echo '[Service]' > /etc/systemd/system/local.service
touch /run/units/stays.service
