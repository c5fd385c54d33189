# A user, and repositories to clone: /srv/app.git with two branches, a tag and an annotated tag, and /srv/empty.git.
useradd -m ada
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.com
export GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z
git config --system safe.directory '*'
git init -q -b main /srv/work
cd /srv/work
commit() { echo "$1" >"$2"; git add "$2"; git commit -q -m "$1"; }
commit one a
git tag v0
commit two a
git tag -a -m one v1
git checkout -q -b dev
commit three b
git checkout -q main
git clone -q --bare /srv/work /srv/app.git
git init -q --bare -b main /srv/empty.git
git remote add origin /srv/app.git
commit four c
mkdir -p /srv/full/x
echo file >/srv/file
# What the tests call between two states: it goes on with the branch main, as often as it is called with a new word.
cat >/srv/go-on <<'END'
#!/bin/sh
[ ! -e "/srv/done-$1" ] || exit 0
touch "/srv/done-$1"
cd /srv/work
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.com
export GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z
case $2 in
  commit) echo "$1" >"$1"; git add "$1"; git commit -q -m "$1"; git push -q origin main ;;
  amend) git commit -q --amend -m "$1"; git push -q -f origin main ;;
  tag) git tag -f "$1" >/dev/null; git push -q -f origin "$1" ;;
  untag) git push -q origin ":$3" ;;
  change) echo changed >"$3" ;;
esac
END
chmod +x /srv/go-on
