# Counters of a host. $interface: network interface.
echo interface "$interface"
for counter in rx_bytes tx_bytes; do
  echo $counter $(cat "/sys/class/net/$interface/statistics/$counter")
done
head -n 1 /proc/stat
sleep 0.2
head -n 1 /proc/stat
