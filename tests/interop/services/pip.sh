# Two virtual environments, which find packages in /srv/wheels and nowhere else, and a user.
useradd -m ada
mkdir -p /srv/wheels /srv/src
cat >/srv/wheel.py <<'END'
import sys, zipfile
name, version, *needs = sys.argv[1:]
info = f'{name}-{version}.dist-info'
with zipfile.ZipFile(f'/srv/wheels/{name}-{version}-py3-none-any.whl', 'w') as wheel:
    files = {
        f'{name}.py': f'version = "{version}"\n',
        f'{info}/METADATA': f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n' + ''.join(f'Requires-Dist: {need}\n' for need in needs),
        f'{info}/WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    }
    for path, text in files.items():
        wheel.writestr(path, text)
    record = ''.join(f'{path},,\n' for path in [*files, f'{info}/RECORD'])
    wheel.writestr(f'{info}/RECORD', record)
END
for wheel in 'demo_one 1.0' 'demo_one 2.0' 'demo_one 2.1rc1' 'demo_two 0.5 demo_one' 'demo_three 1.0'; do /usr/bin/python3 /srv/wheel.py $wheel; done
/usr/bin/python3 -m venv /opt/venv
/usr/bin/python3 -m venv /opt/other
for venv in /opt/venv /opt/other; do
  printf '[global]\nno-index = true\nfind-links = /srv/wheels\ndisable-pip-version-check = true\nno-cache-dir = true\n' >$venv/pip.conf
done
chown -R ada /opt/other
printf 'demo_two\n-r more.txt\n' >/srv/requirements.txt
echo 'demo_three==1.0' >/srv/more.txt
