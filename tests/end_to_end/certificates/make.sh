#!/bin/sh
# Makes the certificates that tests/end_to_end/tls.rs uses: an authority, a server and a client of it. They are valid for
# a hundred years and protect nothing.
set -eu
cd "$(dirname "$0")"
days=36500
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days $days -subj "/CN=tidegate's tests" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign -keyout authority.key -out authority.pem
for name in server client; do
    case $name in server) alternative=DNS:localhost ;; client) alternative=DNS:worker ;; esac
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" -keyout $name.key -out $name.csr
    printf 'subjectAltName=%s\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n' "$alternative" >"$name.ext"
    openssl x509 -req -in $name.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days $days -extfile $name.ext -out $name.pem
done
rm -f ./*.csr ./*.ext ./*.srl authority.key
