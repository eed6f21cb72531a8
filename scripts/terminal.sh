# Shared by scripts/picture and scripts/screens: an Emacs in its own terminal (tmux), into which keys
# are typed. Source it from a shell script that has made the folder $home, and has set $log, the file
# for the standard error of Emacs.

# A server is found by its socket. A server of an earlier run, with an earlier program, must not be.
export XDG_RUNTIME_DIR=$home/run
mkdir -m 700 "$XDG_RUNTIME_DIR"

# A separate tmux server, so that no session of the user is affected.
readonly tmux=(tmux -u -L "contexture-$(basename "$0")-$$" -f /dev/null)
trap '"${tmux[@]}" kill-server 2>/dev/null || true' EXIT

# Usage: open_terminal COLUMNS ROWS COMMAND   runs the shell command COMMAND in it
open_terminal() {
    "${tmux[@]}" new-session -d -x "$1" -y "$2" \
        "env -u TMUX TERM=tmux-256color COLORTERM=truecolor LC_ALL=C.UTF-8 $3 2>'$log'"
    "${tmux[@]}" set-option -g status off >/dev/null
}

# Usage: type KEY…   in the notation of tmux: C-x, M-Up, Enter, or text
# One after the other, as a user does: on a busy machine, keys sent at once get lost.
type() {
    local key
    for key; do
        "${tmux[@]}" send-keys "$key"
        sleep 0.1
    done
}

# Usage: decide_with KEY…   after what a user needs to read what is to decide: no key decides before
decide_with() {
    sleep 1
    type "$@"
}

# Usage: expect REGEXP [LINES]   waits until that many lines (1) of the screen match. The longest wait
# is for SBCL to compile Swank on a busy machine; a minute and more is no sign of a fault.
expect() {
    local look screen
    for look in {1..2000}; do
        screen=$("${tmux[@]}" capture-pane -p) || break
        (($(grep -c -- "$1" <<<"$screen") >= ${2-1})) && return
        sleep 0.05
    done
    printf '%s failed: there is no %s on the screen:\n%s\n' "$0" "$1" "${screen-}" >&2
    cat "$log" >&2
    exit 1
}

# Usage: complete REGEXP   presses TAB until a line of the screen matches: on a busy machine, there
# may be nothing to complete with at first
complete() {
    local press
    for press in {1..20}; do
        type Tab
        sleep 2
        grep -q -- "$1" <<<"$("${tmux[@]}" capture-pane -p)" && return
        type Space BSpace               # ends this completion
    done
    expect "$1"
}

# Usage: refuse_home FILE…   ends the script if a file, or a file in a folder, shows the folder $home
refuse_home() {
    if grep -rn --fixed-strings "$home" "$@"; then
        printf '%s: a screen shows where it was taken\n' "$0" >&2
        exit 1
    fi
}

# Prints the folder of Debian's SLIME.
slime_folder() {
    local folder
    for folder in /usr/share/emacs/site-lisp/elpa/slime-[0-9]*; do
        [[ -e $folder/slime.el ]] && echo "$folder" && return
    done
    printf '%s: there is no SLIME (Debian: slime, cl-swank, sbcl)\n' "$0" >&2
    exit 1
}

# Usage: draw OUTPUT.svg COLUMNS   draws the screen as an SVG whose text is text. The folder $home
# is shown as ~, as Emacs does.
draw() {
    "${tmux[@]}" capture-pane -p -e -N | sed "s|$home|~|g" >"$log.screen"
    emacs -Q --batch -l scripts/picture.el --eval \
        "(picture-draw \"$log.screen\" \"$1\" $2 $("${tmux[@]}" display-message -p '#{cursor_x} #{cursor_y}'))"
    rm "$log.screen"
}
