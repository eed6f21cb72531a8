;;; llm-ert-core.el --- What tests of clients share  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the other files of llm-ert build on: waiting for events instead of
;; time, steps, messages that were said and heard, files, and what a test
;; leaves behind.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'json)
(require 'project)
(require 'seq)
(eval-when-compile (require 'subr-x))

(defgroup llm-ert nil
  "Test packages that talk to models and servers."
  :group 'lisp
  :prefix "llm-ert-")

(eval-and-compile
  (defun llm-ert--split-keys (body)
    "Return (KEYS . FORMS) for BODY, which may begin with keywords and values."
    (let (keys)
      (while (keywordp (car body))
        (push (pop body) keys)
        (push (pop body) keys))
      (cons (nreverse keys) body))))

;;; Wait for events instead of time

;; Waiting until something is so, and steps: places at which a model or a
;; server of a test stands until the test lets it go on.  So no test has to
;; sleep, and none depends on how fast the machine is.  And what all such
;; servers need: a way to write that cannot end Emacs.

(defcustom llm-ert-timeout 2
  "Number of seconds after which a wait in a test fails.
On a machine that has more to do than it has processors for, a wait lasts
longer in proportion, up to five times."
  :type 'number)

;;;; Waiting

(defmacro llm-ert-wait-for (form &rest keys)
  "Wait until FORM is non-nil and return its value; fail if it stays nil.
FORM is evaluated again after each event, such as an answer or a timer.
KEYS are :timeout SECONDS, which overrides `llm-ert-timeout', and
:message TEXT, which a failure shows.  A failure also shows FORM and the
last values of FORM's arguments."
  (declare (indent 1) (debug (form &rest [keywordp form])))
  `(llm-ert-wait-until
    (lambda () ,form)
    :form ',form
    ,@(when (functionp (car-safe form))
        `(:seen (lambda () (list ',(car form) ,@(cdr form)))))
    ,@keys))

(defvar llm-ert--problems nil
  "Functions, each of which returns what went wrong in a peer, or nil.")

(cl-defun llm-ert-wait-until
    (predicate &key (timeout llm-ert-timeout) message (form predicate) seen)
  "Wait until PREDICATE, a function, returns non-nil; return that value.
Fail after TIMEOUT seconds, or later on a busy machine, and at once with
what went wrong in a server of the test.  Otherwise, the failure shows
MESSAGE, a string or a function that returns a list; FORM; and the value of
SEEN, a function that returns FORM with the values of its arguments."
  (let ((start (float-time)) value)
    (while (not (setq value (funcall predicate)))
      ;; The test fails for a problem of a peer anyway.
      (when-let* ((problem (cl-some #'funcall llm-ert--problems)))
        (ert-fail problem))
      (when (and (> (- (float-time) start) timeout)
                 (> (- (float-time) start) (* timeout (llm-ert--patience))))
        (ert-fail (append (if (functionp message) (funcall message)
                            (and message (list message)))
                          (list 'never-true form :after timeout)
                          (when-let* ((values (and seen (ignore-errors (funcall seen)))))
                            (list :seen values)))))
      ;; Output ends this pause at once; the pause is short so that timers run.
      (accept-process-output nil 0.01))
    value))

(defun llm-ert--patience (&optional load)
  "Return by which factor to prolong waits while the machine has this LOAD.
LOAD defaults to the average of the last minute.  The factor is from 1 to 5."
  (let ((load (or load (car (ignore-errors (load-average t))) 0)))
    (min 5 (max 1 (/ load (float (num-processors)))))))

;;;; Explaining

(defun llm-ert--explaining (explain function)
  "Call FUNCTION; if it fails, have ERT show the text that EXPLAIN returns."
  (let* ((info (cons "" ""))
         ;; As `ert-info' does, but with a text that is made when it is needed.
         (ert--infos (cons info ert--infos))
         done)
    (unwind-protect (prog1 (funcall function) (setq done t))
      (unless done
        (setcdr info (funcall explain))))))

(defun llm-ert--paragraph (title lines)
  "Return TITLE and LINES as text, or the empty string if there are none."
  (if lines
      (concat title ":\n"
              (mapconcat (lambda (line)
                           (concat "  " (truncate-string-to-width line 400 nil nil t)))
                         lines "\n")
              "\n")
    ""))

;;;; Steps

(defvar llm-ert--steps nil
  "Alist from the name of a step to the function that continues from there.
The one that was reached first comes first.")

(defun llm-ert--stand-at (name function)
  "Pause at the step NAME; FUNCTION continues from there."
  (setq llm-ert--steps
        (append llm-ert--steps (list (cons name function)))))

(defun llm-ert-await-step (name)
  "Wait until a model or server of the test pauses at the step NAME."
  (llm-ert-wait-until
   (lambda () (assoc name llm-ert--steps))
   :form (list 'at-step name)
   :message (lambda () (list 'steps-reached (mapcar #'car llm-ert--steps)))))

(defun llm-ert-go-on (name)
  "Let the answer that pauses at the step NAME continue; wait until one does."
  (let ((step (llm-ert-await-step name)))
    (setq llm-ert--steps (delq step llm-ert--steps))
    (funcall (cdr step))))

;;;; Writing

(defun llm-ert--send (process text)
  "Send TEXT to PROCESS, a client of a server of the test, unless it hung up.
A batch Emacs that wrote to a connection which the other side closed would
end by SIGPIPE."
  (when (llm-ert--open-p process)
    (condition-case nil
        (process-send-string process text)
      (error (delete-process process)))))

(defun llm-ert--open-p (process)
  "Return non-nil if the other side of PROCESS has not hung up.
To find out, read what it sent; its filter gets that later, so that
nothing overtakes the message that is being answered."
  (when (process-live-p process)
    (let ((filter (process-filter process)) chunks)
      (set-process-filter process (lambda (_ chunk) (push chunk chunks)))
      (accept-process-output process 0 nil 0)
      (set-process-filter process filter)
      (when chunks
        (run-at-time 0 nil filter process (apply #'concat (nreverse chunks))))))
  (process-live-p process))

;;; What a test said and heard

;; The messages of a test, both ways: to look at, to wait for, to judge,
;; and to show where a test fails.

(defvar llm-ert--said 'outside
  "Messages sent and received in this test, the newest first.
Each is a list of `sent' or `received', and the message: data, or text
that `llm-ert--parse' reads when it is needed, since it may be long.
The value is `outside' while no test with a server runs.")

(defvar llm-ert--parse #'ignore
  "Function that returns the message that a text holds, or nil.")

(defvar llm-ert--quiet nil
  "Function that returns non-nil if no call waits to be sent or answered.
Nil if nothing knows.")

(defun llm-ert--note (direction message)
  "Record that MESSAGE went in DIRECTION, `sent' or `received'; return MESSAGE."
  (push (list direction message) llm-ert--said)
  message)

(defun llm-ert-messages ()
  "Return every message of this test, both ways, the oldest first.
Each is a pair of `sent' or `received' and the message, a property
list with :id, :method (a string), :params, :result or :error.  A line
from the server that is not a message is a string."
  (when (eq llm-ert--said 'outside)
    (error "Messages exist only while a server of the test runs, such as \
inside of `llm-ert-with-server'"))
  (cl-loop for (direction said) in (reverse llm-ert--said)
           for message = (if (stringp said) (funcall llm-ert--parse said) said)
           if message collect (cons direction message)
           else if (and (eq direction 'received)
                        (not (string-match-p "\\`[ \t\r]*\\(?:;\\|\\'\\)" said)))
           collect (cons direction said)))

(defun llm-ert-calls (&optional method)
  "Return the parameters of all calls of METHOD, a symbol, in order.
Calls inside of a batch count, too.  Without METHOD return all calls, as
pairs of method and parameters, and a batch as one.  A call counts when
it is sent, so a call made before the server is there counts later."
  (let ((calls (cl-loop for (direction . message) in (llm-ert-messages)
                        for name = (and (eq direction 'sent) (plist-get message :method))
                        when name collect (cons (intern name) (plist-get message :params)))))
    (if method
        (cl-loop for (name . params) in (cl-mapcan #'llm-ert--batched calls)
                 when (eq name method) collect params)
      calls)))

(defun llm-ert--batched (call)
  "Return a list of CALL, a pair of method and parameters, and those inside of it."
  (cons call
        (when (eq (car call) 'batch)
          (mapcar (lambda (it)
                    (cons (intern (format "%s" (plist-get it :method)))
                          (plist-get it :params)))
                  (plist-get (cdr call) :calls)))))

(defun llm-ert-should-called (method &optional params)
  "Fail unless METHOD, a symbol, was called with parameters like PARAMS.
PARAMS, a property list, may leave out parameters; so may the property
lists inside PARAMS.  Return the parameters of the first such call.  Wait for
calls that are still to be sent."
  (let ((failure (lambda ()
                   (list 'never-called method :with params
                         :but (or (mapcar (lambda (call) (cons method call))
                                          (llm-ert-calls method))
                                  (llm-ert-calls))))))
    (llm-ert-wait-until
     (lambda () (or (llm-ert--find-call method params)
                    (and llm-ert--quiet (funcall llm-ert--quiet))))
     :form (list 'called method params) :message failure)
    (if-let* ((calls (llm-ert--find-call method params)))
        (car calls)
      (ert-fail (funcall failure)))))

(defun llm-ert-should-not-called (method &optional params)
  "Fail if METHOD, a symbol, was called with parameters like PARAMS.
PARAMS are as in `llm-ert-should-called'.  First wait until all calls
are answered, if that is known."
  (when llm-ert--quiet
    (llm-ert-wait-until llm-ert--quiet :message "a call was not answered"))
  (when-let* ((calls (llm-ert--find-call method params)))
    (ert-fail (list 'called method :with (car calls)))))

(defun llm-ert--find-call (method params)
  "Return a list that begins with the first call of METHOD like PARAMS, or nil."
  (cl-member-if (lambda (call)
                  (or (null params) (llm-ert--includes-p call params)))
                (llm-ert-calls method)))

(defun llm-ert-await (pattern &optional direction)
  "Wait for a message that has all of PATTERN, a property list; return it.
DIRECTION is `received', which is the default, or `sent'.  The :method in
PATTERN may be a symbol:

    (llm-ert-await \\='(:method progress :params (:kind \"text\")))"
  (let ((pattern (if-let* ((method (plist-get pattern :method)))
                     (plist-put (copy-sequence pattern) :method
                                (format "%s" method))
                   pattern))
        (direction (or direction 'received)))
    (llm-ert-wait-until
     (lambda ()
       (cdr (cl-find-if (lambda (entry)
                          (and (eq (car entry) direction) (consp (cdr entry))
                               (llm-ert--includes-p (cdr entry) pattern)))
                        (llm-ert-messages))))
     :form pattern
     :message (lambda ()
                (list direction (cl-loop for entry in (llm-ert-messages)
                                         when (eq (car entry) direction)
                                         collect (cdr entry)))))))

(defun llm-ert--includes-p (value part)
  "Return non-nil if VALUE contains all of PART."
  (if (and part value (llm-ert--plist-p part) (llm-ert--plist-p value))
      (cl-loop for (key wanted) on part by #'cddr
               always (llm-ert--includes-p (plist-get value key) wanted))
    (equal value part)))

(defun llm-ert--plist-p (value)
  "Return non-nil if VALUE is a property list with keywords, perhaps empty."
  (and (proper-list-p value)
       (cl-evenp (length value))
       (cl-loop for key in value by #'cddr always (keywordp key))))

(defun llm-ert--plist-without (plist key)
  "Return PLIST without KEY."
  (cl-loop for (each value) on plist by #'cddr
           unless (eq each key) nconc (list each value)))

(defconst llm-ert--shown-lines 30
  "Maximum number of messages to show of a test that failed, the last ones.")

(defun llm-ert--messages-explained ()
  "Return the last messages of the test as text, for a test that failed."
  (llm-ert--paragraph
   "Messages"
   (mapcar (pcase-lambda (`(,direction ,said))
             (concat (if (eq direction 'sent) "> " "< ")
                     (if (stringp said) said (format "%S" said))))
           (reverse (seq-take llm-ert--said llm-ert--shown-lines)))))

;;;; The echo area

(defmacro llm-ert-with-messages (var &rest body)
  "Run BODY with VAR standing for what was said in the echo area, as text.
Unlike `ert-with-message-capture', this does not redefine `message',
which makes an Emacs with native compilation compile first."
  (declare (indent 1) (debug (symbolp body)))
  (let ((start (make-symbol "start")))
    `(let* ((message-log-max t)
            (,start (llm-ert--log-end)))
       (cl-symbol-macrolet ((,var (llm-ert--log-since ,start)))
         ,@body))))

(defun llm-ert--log-end ()
  "Return a marker at the end of the log of messages, behind an empty line.
Emacs would join a message with an equal one before it."
  (with-current-buffer (messages-buffer)
    (let ((inhibit-read-only t))
      (goto-char (point-max))
      (insert "\n")
      (copy-marker (point)))))

(defun llm-ert--log-since (start)
  "Return what was logged since START, a marker."
  (with-current-buffer (marker-buffer start)
    (buffer-substring-no-properties start (point-max))))

;;;; JSON

(defun llm-ert--read-json (bytes)
  "Return the data in BYTES, JSON in UTF-8, with property lists and lists."
  (let ((json-object-type 'plist) (json-array-type 'list)
        (json-key-type 'keyword) (json-false nil) (json-null nil))
    (json-read-from-string (decode-coding-string bytes 'utf-8))))

(defun llm-ert--object (json)
  "Return JSON, the text of an object, as data that is encoded as it was."
  (let ((json-object-type 'hash-table) (json-array-type 'vector)
        (json-false json-false) (json-null json-null))
    (json-read-from-string json)))

;;; Whom a test talks to

;; A model, a server or a cassette listens on the loopback interface.  The
;; innermost one of a test is its peer.

(defvar llm-ert--peer nil
  "Process that listens for the model, server or cassette of the test, or nil.")

(defun llm-ert-port ()
  "Return the port of 127.0.0.1 at which the peer of the test listens.
The peer is the innermost model, server or cassette."
  (process-contact (or llm-ert--peer
                       (error "There is no model, server or cassette in this test"))
                   :service))

(defun llm-ert-host ()
  "Return the host and port of the peer of the test, such as \"127.0.0.1:4711\"."
  (format "127.0.0.1:%d" (llm-ert-port)))

(defun llm-ert-url ()
  "Return the address of the peer of the test, without a path or a slash."
  (concat "http://" (llm-ert-host)))

(defun llm-ert-command ()
  "Return a command whose input and output are those of the peer of the test.
It is for packages that start their server as a program.  It needs bash."
  (list "bash" "-c"
        (format "exec 3<>/dev/tcp/127.0.0.1/%d 4<&0 || exit 1
cat <&3 & reader=$!
{ cat <&4 >&3; kill $reader; } 2>/dev/null & writer=$!
trap 'kill $reader $writer 2>/dev/null' EXIT
wait $reader" (llm-ert-port))))

(defun llm-ert--listen (name filter)
  "Listen on a free port of the loopback interface, and return the process.
NAME is the name of the process, and FILTER gets what clients send, as bytes."
  (make-network-process
   :name name :server t :host "127.0.0.1" :service t :family 'ipv4
   :coding 'binary :noquery t :sentinel #'ignore :filter filter))

(defun llm-ert--with-peer (process problem function)
  "Call FUNCTION with PROCESS, which listens, as the peer; then end its clients.
PROBLEM is a function that returns what went wrong in the peer, or nil.  If
FUNCTION fails, that is shown.  Programs of the test reach PROCESS without a
proxy."
  (let ((llm-ert--peer process)
        (llm-ert--problems (cons problem llm-ert--problems))
        (process-environment (append '("no_proxy=127.0.0.1,localhost"
                                       "NO_PROXY=127.0.0.1,localhost")
                                     process-environment)))
    (unwind-protect
        (llm-ert--cleaning-up
         (lambda ()
           (llm-ert--explaining (lambda () (llm-ert--problem-explained (funcall problem)))
                                function)))
      (let ((name (process-name process)))
        (dolist (other (process-list))
          ;; A client is called as the process that listens, with its address.
          (when (string-match-p (concat "\\`" (regexp-quote name) "\\(?: <.*>\\)?\\'")
                                (process-name other))
            (delete-process other)))))))

(defun llm-ert--problem-explained (problem)
  "Return PROBLEM, what went wrong in a peer, as text for a test that failed."
  (llm-ert--paragraph
   "What went wrong"
   (and problem (split-string (if (stringp problem) problem (format "%S" problem)) "\n"))))

;;; Files

(defvar llm-ert-directory nil
  "Folder of `llm-ert-with-files', ending in a slash, or nil.")

(defmacro llm-ert-with-files (files &rest body)
  "Run BODY in a new folder with FILES, and delete the folder afterwards.
FILES is an alist from the name of a file in that folder to its text;
a name that ends in a slash makes a folder.  `default-directory' and
`llm-ert-directory' are the new folder.  It is a project for
project.el, unless BODY begins with :project nil.  Buffers that BODY
creates are killed."
  (declare (indent 1) (debug (form &rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (llm-ert--split-keys body)))
    `(llm-ert--call-with-files ,files (lambda () ,@forms) ,@keys)))

(cl-defun llm-ert--call-with-files (files function &key (project t))
  "Call FUNCTION in a new folder with FILES.
The folder is a project if PROJECT is non-nil."
  (let* ((folder (llm-ert--make-folder))
         (llm-ert-directory folder)
         (default-directory folder)
         (project-find-functions
          (if project
              (list (lambda (directory)
                      (when (file-in-directory-p directory folder)
                        (cons 'transient folder))))
            project-find-functions)))
    (llm-ert--removing-new
     (lambda ()
       (pcase-dolist (`(,name . ,text) files)
         (llm-ert-write-file name text))
       (funcall function))
     (lambda () (delete-directory folder t)))))

(defun llm-ert-write-file (name text)
  "Write TEXT to the file NAME in the test's folder; return its full name.
Missing folders are created.  If NAME ends in a slash, it is a folder,
and TEXT is nil."
  (let ((file (expand-file-name name llm-ert-directory)))
    (unless (and llm-ert-directory (string-prefix-p llm-ert-directory file))
      (error "%s is not in the folder of `llm-ert-with-files'" name))
    (make-directory (file-name-directory file) t)
    (unless (directory-name-p file)
      (let ((coding-system-for-write 'utf-8-unix))
        (write-region text nil file nil 'silent)))
    file))

(defun llm-ert--make-folder ()
  "Return the name of a new folder, ending in a slash."
  (file-name-as-directory (file-truename (make-temp-file "llm-ert" t))))

;;; Leave nothing behind

;; Says what a test left behind, and removes it: buffers, also hidden
;; ones, processes, timers and hooks.  One thing that cannot be removed
;; does not keep the others.

(defvar llm-ert-hooks
  '(after-change-functions after-change-major-mode-hook after-init-hook
    after-load-functions after-save-hook before-change-functions
    before-save-hook buffer-list-update-hook change-major-mode-hook
    completion-at-point-functions emacs-startup-hook find-file-hook
    first-change-hook kill-buffer-hook kill-buffer-query-functions
    kill-emacs-hook kill-emacs-query-functions minibuffer-exit-hook
    minibuffer-setup-hook post-command-hook post-self-insert-hook
    pre-command-hook prog-mode-hook project-find-functions text-mode-hook
    window-buffer-change-functions window-configuration-change-hook
    window-scroll-functions window-selection-change-functions
    window-size-change-functions window-state-change-hook)
  "Hooks that `llm-ert-leftovers' looks at, and tests restore.")

(defconst llm-ert--buffers-of-emacs
  "\\` \\*\\(?:Minibuf\\|Echo Area\\|code-\\(?:conver\\|conversion-work\\)\\|temp\
\\|load\\|autoload\\|info\\|server\\|Compiler\\|eldoc\\|jka-compr\\|work\\|string\
\\|tip\\|DOC\\|gnutls\\|xref\\|pp-display\\|extract-rectangle\\|buffer-defaults\\)"
  "Regexp for names of hidden buffers that belong to Emacs itself.")

(defun llm-ert--snapshot ()
  "Return the buffers, processes, timers and hooks that exist now."
  (list :buffers (buffer-list)
        :processes (process-list)
        :timers (append timer-list timer-idle-list nil)
        :hooks (cl-loop for hook in llm-ert-hooks
                        when (boundp hook)
                        collect (cons hook (copy-sequence
                                            (ensure-list (default-value hook)))))))

(defun llm-ert--new-things (snapshot)
  "Return what exists now but is not in SNAPSHOT.
This is a list of (KIND THING), with the kind `buffer', `process' or
`timer', and of (hook NAME FUNCTION)."
  (append
   (cl-loop for buffer in (buffer-list)
            unless (or (memq buffer (plist-get snapshot :buffers))
                       (string-match-p llm-ert--buffers-of-emacs
                                       (buffer-name buffer)))
            collect (list 'buffer buffer))
   (cl-loop for process in (process-list)
            unless (memq process (plist-get snapshot :processes))
            collect (list 'process process))
   (cl-loop for timer in (append timer-list timer-idle-list)
            unless (or (memq timer (plist-get snapshot :timers))
                       (llm-ert--timer-of-emacs-p timer))
            collect (list 'timer timer))
   (cl-loop for hook in llm-ert-hooks
            for before = (alist-get hook (plist-get snapshot :hooks))
            when (boundp hook)
            append (cl-loop for function in (ensure-list (default-value hook))
                            unless (member function before)
                            collect (list 'hook hook function)))))

(defconst llm-ert--lisp-of-emacs
  (file-name-directory (directory-file-name
                        (file-name-directory (locate-library "ert"))))
  "Folder of the Lisp files that come with Emacs.")

(defun llm-ert--timer-of-emacs-p (timer)
  "Return non-nil if TIMER runs a function that comes with Emacs.
Such timers come and go by themselves."
  (let ((function (timer--function timer)))
    (and (symbolp function)
         (not (eq function 'ignore))
         (let ((file (symbol-file function 'defun)))
           (or (null file)
               (string-prefix-p llm-ert--lisp-of-emacs
                                (expand-file-name file)))))))

(defmacro llm-ert-leftovers (&rest body)
  "Run BODY and return what it leaves behind.
This is a list of (KIND THING), with the kind `buffer', `process' or
`timer', and of (hook NAME FUNCTION), for the hooks in
`llm-ert-hooks'.  Nothing is removed."
  (declare (indent 0) (debug t))
  (let ((snapshot (make-symbol "snapshot")))
    `(let ((,snapshot (llm-ert--snapshot)))
       ,@body
       (llm-ert--new-things ,snapshot))))

(defun llm-ert--remove-new (snapshot)
  "Remove what is not in SNAPSHOT, and add the functions that hooks have lost."
  (pcase-dolist (`(,kind . ,thing) (llm-ert--new-things snapshot))
    (condition-case nil
        (pcase kind
          ('buffer (llm-ert--kill-buffer (car thing)))
          ('process (set-process-sentinel (car thing) #'ignore)
                    (delete-process (car thing)))
          ('timer (cancel-timer (car thing)))
          ('hook (remove-hook (car thing) (cadr thing))))
      (error nil)))
  (pcase-dolist (`(,hook . ,before) (plist-get snapshot :hooks))
    (dolist (function before)
      (unless (member function (ensure-list (default-value hook)))
        (add-hook hook function)))))

(defun llm-ert--kill-buffer (buffer)
  "Kill BUFFER, even if its hooks signal errors or its base buffer was killed."
  (when (buffer-live-p buffer)
    (let ((kill-buffer-query-functions nil))
      (with-current-buffer buffer
        (set-buffer-modified-p nil)
        (condition-case nil
            (kill-buffer)
          (error
           (let ((kill-buffer-hook nil))
             (kill-local-variable 'kill-buffer-hook)
             (kill-buffer))))))))

(defvar llm-ert--cleaning nil
  "Non-nil while something of the test will remove what is new.")

(defun llm-ert--cleaning-up (function)
  "Call FUNCTION, and remove what it leaves behind unless something else will."
  (if llm-ert--cleaning (funcall function)
    (llm-ert--removing-new function)))

(defun llm-ert--removing-new (function &optional last)
  "Call FUNCTION; then remove what it leaves behind, and call LAST.
Nothing that goes wrong meanwhile hides what FUNCTION signals."
  (let ((snapshot (llm-ert--snapshot)) (llm-ert--cleaning t))
    (unwind-protect (funcall function)
      (llm-ert--remove-new snapshot)
      (when last (ignore-errors (funcall last))))))

(provide 'llm-ert-core)
;;; llm-ert-core.el ends here
