;;; contexture-rpc.el --- Calls to the Contexture server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Everything else of the package builds on this: the options that concern
;; the server, the wording of messages, names shown so that nothing hides
;; in them, and calls: `contexture-request-async' in general,
;; `contexture-request' when the user waits for the answer, and
;; `contexture-notify' when there is none.  The first call finds and starts
;; the server (contexture-connection.el); `contexture-connect' joins one.

;;; Code:

(require 'cl-lib)
(eval-when-compile (require 'subr-x))

(declare-function contexture-tools--changed "contexture-tools" ())
(declare-function contexture-live--disconnected "contexture-marks" ())
(declare-function jsonrpc-notify "jsonrpc" (connection method params))
(declare-function jsonrpc-running-p "jsonrpc" (conn))
(declare-function jsonrpc-shutdown "jsonrpc" (conn &optional cleanup))
(autoload 'contexture-embark--offer "contexture-embark")
;; The first call loads these: jsonrpc.el takes longer than all the rest.
(autoload 'contexture--new-connection "contexture-connection")
(autoload 'contexture--subscribe "contexture-connection")
(autoload 'contexture--call "contexture-connection")
(autoload 'contexture--wait "contexture-connection")
(autoload 'contexture--cancel "contexture-connection")
(autoload 'contexture--confirm-leaving "contexture-connection")
(autoload 'contexture-connect "contexture-connection" nil t)

;;; Show what hides in names

;; A name may contain invisible characters: controls, line ends, marks that
;; reverse the text after them, characters without width.  With them one
;; file can look like another, and a model can ask for something other than
;; what you read.  Wherever the package shows a name, such characters become
;; escapes such as \u{202e}, in the server's form.  Where contents are
;; shown, they only look that way; the text stays as it is.
;;
;; `glyphless-display-mode' would show most of these characters, but
;; only in buffers, only where it is on, and the text would still be
;; reversed.

(defconst contexture-visible--ignorable
  (rx (any #xad #x34f #x61c (#x115f . #x1160) (#x17b4 . #x17b5) (#x180b . #x180f)
           (#x200b . #x200f) (#x2028 . #x202e) (#x2060 . #x206f) #x3164
           (#xfe00 . #xfe0f) #xfeff #xffa0 (#xfff0 . #xfffb) (#x1bca0 . #x1bca3)
           (#x1d173 . #x1d17a) (#xe0000 . #xe0fff)))
  "Regexp for a character beyond ASCII that is invisible.
That is Default_Ignorable_Code_Point of Unicode's
DerivedCoreProperties.txt, the separators of lines and paragraphs, and
the marks of interlinear annotations.")

(defconst contexture-visible--flags '("gbeng" "gbsct" "gbwls")
  "Tag sequences after a black flag that make another flag.")

(defconst contexture-visible--cursive
  '(arabic syriac nko mandaic mongolian phags-pa manichaean adlam hanifi-rohingya)
  "Scripts whose letters join.")

;;;; Characters

(defun contexture-visible--hidden-p (char)
  "Return non-nil if CHAR, by itself, is invisible.
Bytes that are not text are visible: Emacs shows them as escapes."
  (cond ((< char ?\s) t)
        ((< char #x7f) nil)
        ((< char #xa0) t)
        ((> char #x10ffff) nil)
        (t (or (string-match-p contexture-visible--ignorable (char-to-string char))
               (eq (contexture-visible--category char) 'Cn)))))

(defun contexture-visible--category (char)
  "Return the general category of CHAR, a symbol."
  (get-char-code-property char 'general-category))

(defun contexture-visible--escape (char &optional properties)
  "Return the escape for CHAR, with the text PROPERTIES."
  (apply #'propertize (pcase char
                        (?\n "\\n") (?\r "\\r") (?\t "\\t")
                        (_ (format "\\u{%x}" char)))
         'face 'escape-glyph properties))

(defun contexture-visible--picture-p (char)
  "Return non-nil if CHAR, a character or nil, can be part of an emoji."
  (and char (or (memq (contexture-visible--category char) '(So Sm))
                (<= #x1f3fb char #x1f3ff)
                (memq char '(#x203c #x2049 #x2139 #x3030)))))

(defun contexture-visible--script-p (char &rest scripts)
  "Return non-nil if CHAR, a character or nil, is of one of SCRIPTS."
  (and char (memq (aref char-script-table char) scripts)))

(defun contexture-visible--right-p (text index)
  "Return non-nil if the hidden character of TEXT at INDEX belongs there.
It belongs there if it changes how ordinary text looks: a joiner between letters
that join, a selector after a character with variants, a part of an
emoji."
  (let ((char (aref text index))
        (base (and (> index 0) (aref text (1- index))))
        (next (and (< (1+ index) (length text)) (aref text (1+ index)))))
    (pcase char
      ((guard (null base)) nil)
      ((or #x200c #x200d)
       (or (eql 9 (get-char-code-property base 'canonical-combining-class))
           (if (eql char #x200c)
               (and (apply #'contexture-visible--script-p base contexture-visible--cursive)
                    (apply #'contexture-visible--script-p next contexture-visible--cursive))
             (and (or (contexture-visible--picture-p base)
                      (and (eql base #xfe0f) (> index 1)
                           (contexture-visible--picture-p (aref text (- index 2)))))
                  (contexture-visible--picture-p next)))))
      ((or #xfe0e #xfe0f) (or (contexture-visible--picture-p base)
                              (and (eql next #x20e3) (< base #x7f))))
      ((pred (<= #xe0100)) (contexture-visible--script-p base 'han 'cjk-misc))
      ((pred (<= #xe0000)) (contexture-visible--in-flag-p text index))
      ((guard (<= #xfe00 char #xfe0d))
       (or (contexture-visible--script-p base 'han 'cjk-misc)
           (eq (contexture-visible--category base) 'Sm)))
      ((guard (<= #x180b char #x180f))
       (and (contexture-visible--script-p base 'mongolian)
            (not (contexture-visible--hidden-p base)))))))

(defun contexture-visible--in-flag-p (text index)
  "Return non-nil if the tag of TEXT at INDEX is part of a flag."
  (cl-some
   (lambda (letters)
     (let* ((tags (concat [#x1f3f4] (mapcar (lambda (it) (+ #xe0000 it)) letters)
                          [#xe007f]))
            (at (string-search tags text (max 0 (- index (length tags))))))
       (and at (< at index (+ at (length tags))))))
   contexture-visible--flags))

;;;; Texts

(defun contexture--visible (text &optional lines)
  "Return TEXT, a string or nil, with escapes for its hidden characters.
With LINES non-nil, line ends and tabs stay."
  (let ((start 0) (done 0) parts)
    (while (and text (setq start (string-match "[^ -~]" text start)))
      (when (and (not (and lines (memq (aref text start) '(?\n ?\t))))
                 (contexture-visible--hidden-p (aref text start))
                 (not (contexture-visible--right-p text start)))
        (push (substring text done start) parts)
        (push (contexture-visible--escape (aref text start)
                                          (text-properties-at start text))
              parts)
        (setq done (1+ start)))
      (setq start (1+ start)))
    (if (null parts) text
      (apply #'concat (nreverse (cons (substring text done) parts))))))

(defun contexture--visible-data (data)
  "Return DATA from the server with escapes in all its strings.
Use the result for display only; keep the data themselves."
  (cond ((stringp data) (contexture--visible data))
        ((consp data) (cons (contexture--visible-data (car data))
                            (contexture--visible-data (cdr data))))
        (t data)))

(defun contexture--visible-candidate (name)
  "Return NAME, a completion candidate, displayed with escapes.
Its text stays the same, so that it still names the same thing."
  (if (equal name (contexture--visible name)) name
    (let ((shown (copy-sequence name)))
      (dotimes (index (length shown))
        (when (and (contexture-visible--hidden-p (aref name index))
                   (not (contexture-visible--right-p name index)))
          (put-text-property index (1+ index) 'display
                             (contexture-visible--escape (aref name index))
                             shown)))
      shown)))

(defun contexture--show-hidden (&optional beg end)
  "Make the hidden characters from BEG to END visible.
BEG and END default to the whole buffer.  Controls are left to Emacs,
which shows them as ^A or \\200.  The text does not change."
  (save-excursion
    (goto-char (or beg (point-min)))
    (with-silent-modifications
      (while (re-search-forward contexture-visible--ignorable end t)
        (let* ((at (1- (point)))
               (from (max (point-min) (- at 8)))
               (around (buffer-substring-no-properties from (min (point-max) (+ at 8)))))
          (if (contexture-visible--right-p around (- at from))
              ;; An earlier call may have escaped it, when the next character was
              ;; not there yet.
              (remove-text-properties at (1+ at) '(display nil))
            (put-text-property at (1+ at) 'display
                               (contexture-visible--escape (char-after at)))))))))

(defun contexture--format (string &rest arguments)
  "Return `format-message' of STRING, with escapes in ARGUMENTS."
  (apply #'format-message string
         (mapcar (lambda (it) (if (stringp it) (contexture--visible it) it))
                 arguments)))

(defun contexture--message (string &rest arguments)
  "Call `message' with STRING, and escapes in ARGUMENTS."
  (message "%s" (apply #'contexture--format string arguments)))

(defun contexture--user-error (string &rest arguments)
  "Signal `user-error' with STRING, and escapes in ARGUMENTS."
  (user-error "%s" (apply #'contexture--format string arguments)))

;;;; Completion

(defun contexture--table (names category &optional annotate)
  "Return a completion table of NAMES, in their order.
NAMES may be a function that returns them, called each time.  CATEGORY
is a symbol, by which other packages know what is chosen:
`contexture-item', `contexture-session' and others.  ANNOTATE, if
non-nil, is called with a name and returns its annotation."
  (lambda (string predicate action)
    (if (not (eq action 'metadata))
        (complete-with-action
         action
         (mapcar #'contexture--visible-candidate
                 (if (functionp names) (funcall names) names))
         string predicate)
      (when (boundp 'embark-keymap-alist)
        (contexture-embark--offer))
      `(metadata (category . ,category)
                 ,@(and annotate `((annotation-function . ,annotate)))
                 (display-sort-function . identity)
                 (cycle-sort-function . identity)))))

;;; What calls and commands share

;; The options and hooks that concern the server, and the wording of
;; messages.

(defgroup contexture-rpc nil
  "How Emacs reaches the Contexture server."
  :group 'contexture
  :prefix "contexture-")

(defcustom contexture-reconnect-delay 0.25
  "Seconds to wait before the first attempt to reconnect to a server.
The wait doubles, up to `contexture-reconnect-max-delay', each time an
attempt fails or the server dies before it has answered a call."
  :type 'number)

(defcustom contexture-reconnect-max-delay 30
  "Maximum number of seconds between two attempts to reach the server."
  :type 'number)

(defcustom contexture-resend-limit 10
  "Number of times the server may die during a call before the call fails.
The call that counts is the oldest unanswered one; its error handler is
called.  See `contexture-reconnect-delay' for the time between attempts."
  :type 'natnum)

(defcustom contexture-queue-limit (* 64 1024 1024)
  "Maximum number of characters in all calls that wait for an answer.
Beyond it, new calls are refused until the server has answered others."
  :type 'natnum)

(defcustom contexture-events-buffer-size 0
  "Maximum size, in characters, of the buffer that shows all messages.
These are the messages between Emacs and the server.  If 0, the default,
there is no such buffer."
  :type 'natnum)

(defcustom contexture-secret-file "~/.config/contexture/secret"
  "File whose first line is the secret for a server on another machine.
Emacs sends it to servers that it reaches by TCP, except on this machine."
  :type 'file)

(defvar contexture-connected-hook nil
  "Normal hook run whenever a connection to a server is made, or made again.")

(defconst contexture--version "0.1.0"
  "Version of this package; the server should have the same.")

(defvar contexture-disconnected-hook nil
  "Normal hook run when the server is left or cannot be reached.
It runs after `contexture-disconnect', each time an attempt to connect
fails, and when a connection is lost that nobody needs now.  It does not
run for a connection that is lost and made again at the first attempt.")

(defvar contexture-notification-functions nil
  "Abnormal hook run for each notification from the server.
Each function is called with METHOD, a symbol, and PARAMS, a plist.
Use `contexture-watch' to add one: it also subscribes to notifications.")

(defconst contexture--max-items 1000
  "Largest capacity of a context, in items, that the server allows.")

(defvar contexture--last-replaced 0
  "Number of characters in the last message that could not be sent.")

;;;; Words

(defun contexture--count (number noun &optional plural)
  "Return NUMBER with NOUN, or with PLURAL (default NOUN and s)."
  (format "%d %s" number (if (= number 1) noun (or plural (concat noun "s")))))

(defun contexture--replaced-text (number)
  "Return a phrase for NUMBER of characters that could not be sent."
  (concat (contexture--count number "character that is not text was"
                             "characters that are not text were")
          " replaced by U+FFFD"))

(defun contexture-show-error (problem)
  "Show PROBLEM, the error of a call, in the echo area."
  (contexture--message "Contexture: %s" (contexture--error-text problem)))

(defun contexture--error-text (problem)
  "Return the message for PROBLEM, the error of a call.
If the server suggests a remedy, the message names the command for it."
  (let ((data (plist-get problem :data)))
    (if (eq (plist-get data :kind) :capacity-full)
        (contexture--full-text (plist-get data :count) (plist-get data :tokens)
                               (plist-get data :capacity) (plist-get data :pinned))
      (plist-get problem :message))))

(defun contexture--full-text (files tokens capacity pinned)
  "Return a phrase for a full context.
CAPACITY is how many items it holds, and PINNED how many are pinned.
FILES and TOKENS describe the directory that was to be added; they are
nil for anything else."
  (let ((needed (and files (+ files pinned))))
    (concat
     (if files
         (format "%s (%s) do not fit; the context holds at most %d"
                 (contexture--count files "file") (contexture--count tokens "token")
                 capacity)
       (format "the context is full; it holds at most %d" capacity))
     (if (> pinned 0) (format " (%d pinned)" pinned) "")
     (cond ((and needed (<= needed contexture--max-items))
            (format "; raise the limit to %d or more with M-x contexture-set-capacity, \
or add a listing" needed))
           (files (format ", and no context can hold more than %d; add a smaller \
directory or a listing" contexture--max-items))
           (t "; unpin or remove some, or raise the limit with \
M-x contexture-set-capacity")))))

(defun contexture--problem-text (problem)
  "Return the message for PROBLEM, a condition."
  (pcase problem
    (`(contexture-unreadable ,line)
     (format "ignored a line that is not a message: %s" line))
    (`(contexture-error ,(and (pred stringp) text) . ,_) text)
    (_ (error-message-string problem))))

;;;; Keys

(defun contexture--choose-evil-state (state)
  "With Evil, let buffers of this major mode begin in STATE, an Evil state.
In Evil's normal state, its keys would hide those of a list.  What the
user chose for this mode stays."
  (when (and (fboundp 'evil-initial-state) (fboundp 'evil-set-initial-state)
             (not (evil-initial-state major-mode)))
    (evil-set-initial-state major-mode state)))

;;;; Later

(defun contexture--later (function &rest args)
  "Call FUNCTION with ARGS as soon as Emacs is waiting for input."
  (apply #'run-at-time 0 nil function args))

;;;; Models

(defcustom contexture-providers nil
  "Models to talk to, besides those in the server's configuration file.
Each is (NAME . PLIST).  Emacs sends them to the server each time it
connects, and the server keeps them until it ends.  The plist has

  :kind         openai (or any server with its interface), anthropic,
                gemini, ollama or scripted
  :model        the provider's name for the model
  :base-url     the address, if it is not the usual one of that kind
  :auth-source  t to look the key up with `auth-source' by the host of
                the address, or a plist of :host and :user.
                The key is sent to the server, which keeps it in memory
  :api-key-env  instead, the environment variable of the server that has
                the key
  :api-key-command
                instead, the command that prints the key
  :script       the file with the answers of a scripted provider
  :context      Ollama's context length in tokens; its own default is
                often small
  :answer-tokens
                maximum number of tokens of an answer
  :price-input, :price-output
                price of a million tokens, in any currency
  :default      t to use this model when none is named

`contexture-configure-provider' asks for what is needed of this."
  :type '(alist :key-type (string :tag "Name")
                :value-type (plist :tag "Settings")))

(defvar contexture-providers-hook nil
  "Normal hook run each time the server accepts one of `contexture-providers'.")

;;;; Tools

(defcustom contexture-tools nil
  "Tools of Emacs that models may call, and where.
Each is (TOOL PLACE).  TOOL is a name, or t for all tools that only read.
PLACE is t for everywhere, (session . ID) or (project . FOLDER).
`contexture-tools-on' and `contexture-tools-off' change this for the
running Emacs."
  :type '(repeat (list (choice (const :tag "All that only read" t)
                               (string :tag "Name"))
                       (choice (const :tag "Everywhere" t)
                               (cons :tag "Session" (const session) (string :tag "Id"))
                               (cons :tag "Project" (const project) directory))))
  :set (lambda (option value)
         (set-default option value)
         (when (featurep 'contexture-tools)
           (contexture-tools--changed))))

;;; Calls to the Contexture server

;; A call may reach the server twice (see contexture-connection.el), so
;; every call that changes something carries a `:request-key', by which the
;; server recognises it and repeats its answer.
;;
;; `contexture-request-batch' makes many calls in one, and
;; `contexture-request-pages' fetches a long list in short answers.

(defcustom contexture-server-command nil
  "The server's program, as a string or a list of program and arguments.
Nil means look for it: first for a binary built or installed beside the
Emacs package, then for `contexture' in the variable `exec-path', then in
\"~/.local/bin\" and \"~/.cargo/bin\".  Emacs adds the arguments
\"serve --stdio\" and those of `contexture-server-args'."
  :type '(choice (const :tag "Find it" nil)
                 (file :tag "Program")
                 (repeat :tag "Program and arguments" string))
  :group 'contexture-rpc)

(defcustom contexture-server-args nil
  "Additional arguments for the server, after \"serve --stdio\".
They take effect after `contexture-disconnect'."
  :type '(repeat string)
  :group 'contexture-rpc)

(defcustom contexture-request-timeout 10
  "Number of seconds after which a command stops waiting for an answer."
  :type 'number
  :group 'contexture-rpc)

(defconst contexture--directory
  (file-name-directory (or load-file-name buffer-file-name default-directory))
  "Folder of this package; the server may be built beside it.")

(defconst contexture--changing-methods
  '(add-item add-file add-tree update-item update-items freeze-items
    remove-items move-item transfer-items pin-items open-layers
    clear-manager undo redo refresh-items configure-manager drop-manager save-set
    load-set drop-set open-session rename-session delete-session restore-session
    import-session import-sessions add-message pin-message checkpoint rollback
    undo-rollback record-push push-next cancel-push undo-session redo-session fork-session
    restore-revision prune-session summarize-session process-turn
    report-usage remember ground-query forget trust-project distrust-project
    take-notes chat approve configure-provider remove-provider backup batch
    add-context update-context remove-context move-context pin-context
    clear-context refresh-context switch-session prune-context
    auto-manage-context summarize-context manage-context)
  "Methods whose calls carry a request key, so that none is applied twice.
These are the server's methods that change something, followed by their
earlier names.  `configure-session' is left out: it also reads settings,
and a repeated call of it changes nothing more.")

(defconst contexture--showing-methods
  '(list-items render-items context-to-string search-items read-file
    count-items refresh-items freeze-items
    add-item add-file add-tree update-item undo redo save-set transfer-items batch
    chat build-window count-window explain-window process-turn take-notes
    summarize-session session-stats get-context render-context context-summary refresh-context
    add-context update-context build-context explain-context manage-context
    summarize-context auto-manage-context)
  "Methods that show or send items, or compare them with others.
Before these, the server is told what changed in buffers: a connection's
calls begin in order.  The earlier names of methods are here, too.")

(defvar contexture--connection nil
  "Connection in use, or nil before the first call.")

(defvar contexture--watched-topics nil
  "Alist from each function that watches notifications to its topics.")

(defvar contexture--live-off nil
  "Non-nil if no visited file is to follow items, as in tests with recordings.
The calls that this needs are not those of the package under test.")

(defvar contexture--live-watching nil
  "Non-nil if live items of buffers follow what others change.")

(defvar contexture--request-key-prefix nil
  "Prefix of the request keys of this Emacs.")

(defvar contexture--request-key-count 0
  "Number of request keys that this Emacs has made.")

;;;; The connection in use

(defun contexture-current-connection ()
  "Return the connection in use; create it on first use."
  (or contexture--connection
      (setq contexture--connection
            (contexture--new-connection (contexture--server-command)))))

(defun contexture--server-command ()
  "Return program and arguments of the server as a list."
  (append (if contexture-server-command
              (let ((command (ensure-list contexture-server-command)))
                (cons (contexture--program (car command)) (cdr command)))
            (list (contexture--find-server)))
          (list "serve" "--stdio")
          contexture-server-args))

(defun contexture--program (name)
  "Return the absolute name of the program NAME, or signal an error."
  (expand-file-name
   (or (executable-find name)
       (contexture--user-error "There is no program %s; set `contexture-server-command' \
to the server's program, or to nil so that Emacs finds it" name))))

(defconst contexture--places-beside
  '("../target/release/contexture" "../target/debug/contexture" ; in the sources
    "../../../../bin/contexture"                                ; installed with it
    "bin/contexture")                         ; by `contexture-install-server'
  "Places of a server of the same version, relative to this package.")

(defconst contexture--places-at-home
  '("~/.local/bin/contexture" "~/.cargo/bin/contexture")
  "Places to look for the server that may not be in the variable `exec-path'.")

(defun contexture--server-in (places)
  "Return the absolute file names of PLACES, relative to this package."
  (mapcar (lambda (place) (expand-file-name place contexture--directory)) places))

(defun contexture--find-server ()
  "Return the server's file name, or signal an error with advice."
  (or (cl-find-if #'file-executable-p (contexture--server-in contexture--places-beside))
      (executable-find "contexture")
      (cl-find-if #'file-executable-p (contexture--server-in contexture--places-at-home))
      (user-error "Contexture's server is not installed; \
M-x contexture-install-server installs it")))

;;;; Calls

(defconst contexture--patience 0.5
  "Number of seconds after which to say that the server has not answered.")

(cl-defun contexture-request-async (method &optional params &key success error)
  "Call METHOD, a symbol, with PARAMS, a plist, and return at once.
SUCCESS is called with the result, ERROR with a plist of `:code',
`:message' and `:data'; both outside of any process filter.  Without
ERROR the message is shown.  While the server cannot be reached, Emacs
keeps the call and sends it later.  Return the call's id."
  (let ((success (or success #'ignore))
        (failure (or error #'contexture-show-error)))
    (contexture--call (contexture-current-connection)
                      method (contexture--with-request-key method params)
                      (lambda (result) (contexture--later success result))
                      (lambda (problem) (contexture--later failure problem)))))

(cl-defun contexture--request-patiently (method params &key success error)
  "Call METHOD with PARAMS for a command, as `contexture-request-async' does.
If neither SUCCESS nor ERROR is called soon, a message says that the
answer is still to come."
  (let (timer)
    (cl-flet ((back (function)
                (lambda (answer)
                  (cancel-timer timer)
                  (contexture--tell-no-longer)
                  (funcall function answer))))
      (prog1 (contexture-request-async
              method params
              :success (back (or success #'ignore))
              :error (back (or error #'contexture-show-error)))
        (setq timer (run-at-time contexture--patience nil
                                 #'contexture--tell-waiting))))))

(defconst contexture--waiting
  "Waiting for the Contexture server…"
  "Message while a command waits for the server.")

(defun contexture--tell-waiting ()
  "Say that the server has not answered yet, unless it is known to be away."
  (when (contexture-running-p)
    (message contexture--waiting)))

(defun contexture--tell-no-longer ()
  "Take back that the server has not answered, if the echo area says so."
  (when (equal (current-message) contexture--waiting)
    (message nil)))

(cl-defun contexture-request (method &optional params
                                     &key (timeout contexture-request-timeout))
  "Call METHOD, a symbol, with PARAMS, a plist, and return the result.
Signal `contexture-error' with the server's message, or if there is no
answer within TIMEOUT seconds.  Quitting cancels the call.  Do not use
this in timers and filters, where waiting blocks everything else."
  (let* ((connection (contexture-current-connection))
         (answer nil)
         (id (contexture--call connection
                               method (contexture--with-request-key method params)
                               (lambda (result) (setq answer (list t result)))
                               (lambda (problem) (setq answer (list nil problem))))))
    (unwind-protect
        (contexture--wait connection timeout (lambda () answer))
      (unless answer (contexture--cancel connection id)))
    (pcase answer
      (`(t ,result) result)
      (`(nil ,problem)
       (signal 'contexture-error
               (list (contexture--visible (plist-get problem :message) t)
                     (plist-get problem :code)
                     (plist-get problem :data)))))))

(defun contexture-request-batch (calls &optional atomic)
  "Make CALLS in one message and return their outcomes in order.
Each of CALLS is a pair (METHOD . PARAMS), and each outcome a plist of
`:result' or `:error'.  A call that fails does not affect the others,
unless ATOMIC is non-nil: then the first failure undoes them all, and its
error is signaled."
  (plist-get (contexture-request 'batch (contexture--batch calls atomic))
             :results))

(cl-defun contexture-request-batch-async (calls &key atomic success error)
  "Make CALLS in one message and return at once.
SUCCESS is called with their outcomes, as `contexture-request-batch'
returns them for CALLS and ATOMIC.  ERROR is as in
`contexture-request-async'."
  (contexture--request-patiently
   'batch (contexture--batch calls atomic)
   :success (lambda (result)
              (funcall (or success #'ignore) (plist-get result :results)))
   :error error))

(defun contexture--batch (calls atomic)
  "Return the parameters of a batch of CALLS, pairs (METHOD . PARAMS).
ATOMIC is as in `contexture-request-batch'."
  `(:calls ,(mapcar (lambda (call)
                      (list :method (symbol-name (car call)) :params (cdr call)))
                    calls)
    ,@(and atomic '(:atomic t))))

(defconst contexture--page-bytes 65536
  "Maximum size, in bytes, of the answers to `contexture-request-pages'.")

(defconst contexture--newest-first-methods '(list-items get-context get-messages)
  "Methods whose first page has the newest entries, from the end of the list.")

(cl-defun contexture-request-pages (method &optional params &key success error)
  "Fetch the whole list that METHOD with PARAMS returns, in short answers.
SUCCESS is called with the list, ERROR as in `contexture-request-async'.
The server can answer other calls between the pages.  Entries that are
too long for a page are fetched by their ids."
  (let (parts)
    (cl-labels
        ((ask (params)
           (contexture-request-async
            method (append params (list :max-bytes contexture--page-bytes))
            :success #'receive :error error))
         (receive (page)
           (if-let* ((cut (cl-loop for item in (plist-get page :items)
                                   when (plist-get item :truncated)
                                   collect (plist-get item :id))))
               (contexture-request-async
                method (append (list :ids (vconcat cut)) params)
                :success (lambda (whole) (add page whole)) :error error)
             (add page nil)))
         (add (page whole)
           (push (cl-loop for item in (plist-get page :items)
                          collect (or (cl-find (plist-get item :id) whole :test #'equal
                                               :key (lambda (it) (plist-get it :id)))
                                      item))
                 parts)
           (if-let* ((next (plist-get page :next)))
               (ask (list :cursor next))
             (funcall (or success #'ignore)
                      (apply #'append
                             (if (memq method contexture--newest-first-methods)
                                 parts
                               (nreverse parts)))))))
      (ask params))))

(defun contexture-notify (method &optional params)
  "Send METHOD, a symbol, with PARAMS as a notification, which has no answer.
Do nothing if no server is connected."
  (jsonrpc-notify (contexture-current-connection) method params))

(defun contexture-watch (function &optional topics)
  "Call FUNCTION for the server's notifications, now and after reconnects.
Its arguments are METHOD, a symbol, and PARAMS, a plist.  TOPICS is a
list of symbols to subscribe to besides `context-changed'; every function
gets the notifications that any of them wants.  This starts no server."
  (setf (alist-get function contexture--watched-topics nil t) topics)
  (add-hook 'contexture-notification-functions function)
  (when contexture--connection
    (contexture--subscribe contexture--connection)))

(defun contexture-unwatch (function)
  "Stop calling FUNCTION for the server's notifications.
End the subscriptions that only FUNCTION wanted."
  (remove-hook 'contexture-notification-functions function)
  (setf (alist-get function contexture--watched-topics nil t) nil)
  (when contexture--connection
    (contexture--subscribe contexture--connection)))

(defun contexture--wanted-topics ()
  "Return the names of all topics that some function watches."
  (when (or contexture-notification-functions contexture--live-watching)
    (cons "context-changed"
          (sort (delete-dups
                 (append (and contexture--live-watching (list "text-wanted"))
                         (cl-loop for (function . topics) in contexture--watched-topics
                                  when (memq function contexture-notification-functions)
                                  append (mapcar #'symbol-name topics))))
                #'string<))))

(defun contexture-running-p ()
  "Return non-nil if a server is connected."
  (and contexture--connection (jsonrpc-running-p contexture--connection)))

(defun contexture--with-request-key (method params)
  "Return PARAMS with a request key if METHOD changes something."
  (if (and (memq method contexture--changing-methods)
           (not (plist-member params :request-key)))
      (append params (list :request-key (contexture--make-request-key)))
    params))

(defun contexture--make-request-key ()
  "Return a string that no other call of any Emacs carries."
  (unless contexture--request-key-prefix
    (setq contexture--request-key-prefix
          (format "emacs-%s-%x-%06x" (format-time-string "%s") (emacs-pid)
                  (random #x1000000))))
  (format "%s-%d" contexture--request-key-prefix
          (cl-incf contexture--request-key-count)))

;;;; Leaving

(defun contexture-disconnect ()
  "Disconnect from the server; the next call connects again.
A server that this Emacs started ends; its data are saved."
  (interactive (progn (contexture--confirm-leaving) nil))
  (when contexture--connection
    (jsonrpc-shutdown contexture--connection)
    (setq contexture--connection nil)
    (when (featurep 'contexture-marks)
      (contexture-live--disconnected))
    (run-hooks 'contexture-disconnected-hook)))

(provide 'contexture-rpc)
;;; contexture-rpc.el ends here
