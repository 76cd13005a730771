# SPDX-License-Identifier: Apache-2.0
#
# Sourced with $suite: makes apt look into one Debian suite and nowhere else, below build/vm/apt,
# with the mirror that this machine's apt uses. Sets vm, apt, and options for apt-get and apt-cache.

vm=$(realpath -m "${BUILD:-build}/vm")
apt=$vm/apt/$suite
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

mirror=$(apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)' 'Created-By: Packages' |
	awk -F'|' '$2 !~ /[-\/]/ && $3 == "main" { print $1; exit }')
[ "$mirror" ] || { echo "apt on this machine has no Debian mirror" >&2; exit 1; }

mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"
echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite main" >"$apt/sources.list"
options=(-q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=- -o Dir::Etc::Preferences=-
	-o Dir::Etc::PreferencesParts=- -o "Dir::State::Lists=$apt/lists" -o "Dir::State::Status=$apt/status"
	-o "Dir::Cache=$apt/cache" -o APT::Sandbox::User= -o APT::Architecture=amd64 -o APT::Architectures=amd64
	-o Acquire::Languages=none -o Acquire::Check-Valid-Until=false)

# What a failed command's log says of it, in a line or two.
log_reason() { grep -E '^[EW]:|^no ' "$1" | head -n 2 || tail -n 2 "$1"; }
