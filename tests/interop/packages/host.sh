# Makes this root's packages known: a repository of small ones in the folder /srv/packages, and no other source.
set -eu
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/preferences.d/* /var/lib/apt/lists
mkdir -p /etc/apt/sources.list.d /var/lib/apt/lists/partial /srv/packages /srv/other /srv/keyed /srv/text /srv/build
touch /srv/keyed/Packages /srv/text/Packages
cd /srv/build

# NAME VERSION FOLDER [FIELD…]: a package with a file of its own and a configuration file.
package() {
  name=$1 version=$2 folder=$3
  shift 3
  mkdir -p "$name/DEBIAN" "$name/usr/share/$name" "$name/etc"
  { printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: A <a@example.com>\n' "$name" "$version"
    for field; do printf '%s\n' "$field"; done
    printf 'Description: a package to try\n'; } > "$name/DEBIAN/control"
  echo "$version" > "$name/usr/share/$name/version"
  echo "$name" > "$name/etc/$name.conf"
  echo "/etc/$name.conf" > "$name/DEBIAN/conffiles"
  [ "$name" != brine-bad ] || printf '#!/bin/sh\necho "it does not work" >&2\nexit 3\n' > "$name/DEBIAN/postinst"
  [ "$name" != brine-bad ] || chmod 755 "$name/DEBIAN/postinst"
  file="${name}_$(echo "$version" | tr : _)_all.deb"
  dpkg-deb --root-owner-group -b "$name" "$folder/$file" > /dev/null
  rm -r "$name"
  { dpkg-deb -f "$folder/$file"
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$file" "$(stat -c %s "$folder/$file")" "$(sha256sum "$folder/$file" | cut -d' ' -f1)"
  } >> "$folder/Packages"
}

package brine-a 1.0-1 /srv/packages
package brine-a 2.0-1 /srv/packages
package brine-b 1:1.0-1 /srv/packages 'Depends: brine-a'
package brine-c 0.9~rc1 /srv/packages
package brine-bad 1.0 /srv/packages
package brine-file 3.0 /srv/other
# No key, but what a key in text looks like.
printf -- '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nMTIzNDU2Nzg5\n=Ic8C\n-----END PGP PUBLIC KEY BLOCK-----\n' > /etc/apt/brine.asc
cp /etc/apt/brine.asc /etc/apt/brine.gpg
# What the package debconf-utils has.
cat > /usr/bin/debconf-get-selections << 'END'
#!/usr/bin/perl
use Debconf::Db;
use Debconf::Question;
Debconf::Db->load;
my $questions = Debconf::Question->iterator;
while (my $question = $questions->iterate) {
  my $type = $question->type;
  next if !length $type || $type eq 'text' || $type eq 'title';
  print "$_\t", $question->name, "\t$type\t", $question->value, "\n" for split ', ', $question->owners;
}
END
chmod 755 /usr/bin/debconf-get-selections
echo 'deb [trusted=yes] file:/srv/packages ./' > /etc/apt/sources.list.d/packages.list
apt-get -q update > /dev/null
