# Facts of a host. $@: names of all hosts; $binary: ombx.
echo hostname $(cat /proc/sys/kernel/hostname)
echo boot_id $(cat /proc/sys/kernel/random/boot_id)
echo kernel $(uname -srm)
echo cores $(nproc)
echo cpu $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
for name; do
  getent hosts "$name" >/dev/null && echo resolves "$name" || echo unresolved "$name"
done
echo binary $(sha256sum "$binary" 2>/dev/null | cut -d' ' -f1)
version=$("$binary" --version 2>&1) && echo ombx "$version" || echo broken $version
for library in $(ldd "$binary" 2>/dev/null | sed -n 's/^[[:space:]]*\(libmpi[^ ]*\|libucp[^ ]*\|libfabric[^ ]*\) => \(\/[^ ]*\).*/\2/p'); do
  echo library "$library" $(sha256sum "$library" | cut -c1-16)
done
