;;; contexture-test-helper.el --- What the suites share  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Each test gets a server of its own, a real one, and a folder of its
;; own.  Waiting is always for a condition, never for a time.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'ert-x)
(require 'tramp)
(require 'contexture)
(require 'contexture-ert)
(require 'contexture-list)
(require 'contexture-marks)
(require 'contexture-sources)

(defvar contexture-doctor-timeout)
;; These suites run beside others, and with a server that was built to debug.
(setq llm-ert-timeout 60)
;; Whoever tests what does not answer in time sets less.
(setq contexture-doctor-timeout llm-ert-timeout)

(defvar contexture-conversation-history-file)
;; Not the user's. Whoever tests the history sets a file of the test's own.
(setq contexture-conversation-history-file nil)

(defconst contexture-test-root
  (expand-file-name "../.." (file-name-directory (or load-file-name buffer-file-name)))
  "Where the sources are.  The package that is tested may be a copy.")

(defconst contexture-test-binary
  (or (getenv "CONTEXTURE_BIN")
      (cl-find-if #'file-executable-p
                  (list (expand-file-name "target/release/contexture" contexture-test-root)
                        (expand-file-name "target/debug/contexture" contexture-test-root))))
  "The server under test.")

(defmacro contexture-test-with-server (&rest body)
  "Run BODY with a server that keeps nothing, and clean up after it."
  (declare (indent 0) (debug t))
  `(contexture-test-with-args nil (lambda () ,@body)))

(defmacro contexture-test-with-state (&rest body)
  "Run BODY with a server that keeps its state in the test's directory."
  (declare (indent 0) (debug t))
  `(contexture-test-with-args :state (lambda () ,@body)))

(defun contexture-test-with-args (state function)
  "Call FUNCTION in a new directory that is no project, with a server.
Its clock goes.  It keeps nothing, unless STATE is `:state'."
  (contexture-test-in-directory
   (lambda ()
     (contexture-ert-with-server
       :state (and state (concat llm-ert-directory "state"))
       :time nil
       :tokenizer nil
       (funcall function)))))

(defun contexture-test-in-directory (function)
  "Call FUNCTION in a new directory that is no project, with our own server at hand."
  (llm-ert-with-files nil
    :project nil
    (let ((contexture-ert-server-command contexture-test-binary))
      (funcall function))))

;;;; Another Emacs

(defconst contexture-test--own-variables
  '(contexture--connection contexture--emacs-number contexture--live-off
    contexture-live--buffers contexture-notification-functions)
  "Variables of which each Emacs has its own value.")

(defvar contexture-test--away nil
  "While another Emacs is played: the values of this one's own variables.
Those of the other one while this one handles what its server tells it.")

(defun contexture-test--change-places ()
  "Give the values in `contexture-test--away' to the variables, and keep theirs."
  (let ((now (mapcar #'symbol-value contexture-test--own-variables)))
    (cl-mapc #'set contexture-test--own-variables contexture-test--away)
    (setq contexture-test--away now)))

(defun contexture-test--at-home (function receiver &rest args)
  "Call FUNCTION with RECEIVER and ARGS as the Emacs whose connection gets something.
RECEIVER is the connection or its process."
  (if (or (null contexture-test--away)
          (memq contexture--connection
                (list receiver
                      (and (processp receiver) (process-get receiver 'contexture-connection)))))
      (apply function receiver args)
    (contexture-test--change-places)
    (unwind-protect (apply function receiver args)
      (contexture-test--change-places))))

(dolist (function '(contexture--filter contexture--drain contexture--hand-on-news))
  (advice-add function :around #'contexture-test--at-home))

(defun contexture-test--later (later function &rest args)
  "Have LATER call FUNCTION with ARGS, as the Emacs that asks for it now."
  (let ((number contexture--emacs-number))
    (funcall later
             (lambda ()
               (if (or (null contexture-test--away) (equal number contexture--emacs-number))
                   (apply function args)
                 (contexture-test--change-places)
                 (unwind-protect (apply function args)
                   (contexture-test--change-places)))))))

(advice-add 'contexture--later :around #'contexture-test--later)

(defmacro contexture-test-as-other-emacs (other &rest body)
  "Run BODY as an Emacs without buffers, with the connection in the variable OTHER.
What this Emacs's own server tells it meanwhile, it handles as itself."
  (declare (indent 1) (debug t))
  `(let ((contexture-test--away (list ,other "other" t nil nil)))
     (contexture-test--change-places)
     (unwind-protect (progn ,@body)
       (setq ,other contexture--connection)
       (contexture-test--change-places))))

(defun contexture-test-file (name &rest lines)
  "Write LINES to the file NAME in the test's directory; return its full name."
  (llm-ert-write-file
   name (mapconcat (lambda (line) (concat line "\n")) lines "")))

(defun contexture-test-git (&rest args)
  "Run git with ARGS in the test's directory."
  (with-temp-buffer
    (unless (zerop (apply #'call-process "git" nil t nil
                          "-c" "user.name=t" "-c" "user.email=t@example.org" args))
      (ert-fail (buffer-string)))))

(defun contexture-test-use-clients (clients installed)
  "Skip the running test unless it may use CLIENTS, which others wrote.
INSTALLED says whether they are there.  CONTEXTURE_TESTS is the tier of
scripts/test: `all' installs them, so they have to be there, and the
quicker tiers leave such tests to it."
  (pcase (getenv "CONTEXTURE_TESTS")
    ("all" (unless installed
             (ert-fail (format "There is no %s, which `make setup-all' installs" clients))))
    ('nil (unless installed
            (ert-skip (format "There is no %s" clients))))
    (_ (ert-skip (format "`make test-all' runs it, with %s" clients)))))

(defun contexture-test-rounds (few all)
  "Return ALL in `make test-all', else FEW."
  (if (equal (getenv "CONTEXTURE_TESTS") "all") all few))

(defun contexture-test-item-ids ()
  "Return the ids of the items that have a place in this buffer."
  (mapcar #'contexture-live--item-id
          (contexture-live--in-order contexture-live--items)))

(defmacro contexture-test-visiting (file &rest body)
  "Run BODY in a buffer that visits FILE."
  (declare (indent 1) (debug t))
  `(let ((buffer (find-file-noselect ,file)))
     (save-window-excursion
       (with-current-buffer buffer ,@body))))

(defun contexture-test-items (&optional manager)
  "Return the items of MANAGER, the current buffer's unless given."
  (contexture-request
   'get-context (list :manager (or manager (contexture-adding-context)))))

(defun contexture-test--settled-p ()
  "Return non-nil if no call is unanswered and nothing is left to run."
  (and (zerop (hash-table-count (oref (contexture-current-connection) unanswered)))
       (not (cl-some (lambda (timer)
                       (memq (timer--function timer)
                             '(contexture--drain contexture--hand-on-news
                               contexture--tell-added run-hooks)))
                     timer-list))))

(defun contexture-test-settle ()
  "Wait until no call is unanswered and nothing is left to run.
What the server has to tell comes before its last answer, and may lead to
further calls."
  (let (settled)
    (while (not settled)
      (llm-ert-wait-for (contexture-test--settled-p))
      (contexture-request 'ping)
      (accept-process-output nil 0.001)
      (setq settled (contexture-test--settled-p)))))

(defun contexture-test-only-item (&optional manager)
  "Return the one item of MANAGER, the current buffer's unless given."
  (let ((items (contexture-test-items manager)))
    (should (= (length items) 1))
    (car items)))

(defun contexture-test-params (method)
  "Return what the server takes with METHOD: an alist from names to schemas.
The names are strings, as in Lisp."
  (let* ((methods (plist-get (contexture-request 'schema) :methods))
         (of (plist-get methods (intern (format ":%s" method)))))
    (cl-loop for (name schema) on (plist-get (plist-get of :params) :properties) by #'cddr
             collect (cons (string-replace "_" "-" (substring (symbol-name name) 1))
                           schema))))

(defun contexture-test-values (method param)
  "Return the names that the server takes as PARAM, a string, of METHOD."
  (let ((types (plist-get (contexture-request 'schema) :$defs)))
    (cl-labels ((constants (of)
                  (append (plist-get of :enum)
                          (and (plist-get of :const) (list (plist-get of :const)))
                          (when-let* ((type (plist-get of :$ref))
                                      (name (concat ":" (file-name-nondirectory type))))
                            (constants (plist-get types (intern name))))
                          (and (plist-get of :items) (constants (plist-get of :items)))
                          (cl-loop for branch in (append (plist-get of :anyOf)
                                                         (plist-get of :oneOf))
                                   append (constants branch)))))
      (constants (cdr (assoc param (contexture-test-params method)))))))

(defun contexture-test-metadata (item &rest keys)
  "Return what ITEM's metadata has under KEYS."
  (mapcar (lambda (key) (plist-get (plist-get item :metadata) key)) keys))

(defun contexture-test-timers ()
  "Return all timers but that of Emacs's own undo, which ends by itself."
  (cl-remove 'undo-auto--boundary-timer (append timer-list timer-idle-list)
             :key #'timer--function))

(defmacro contexture-test-message (regexp &rest body)
  "Run BODY and wait for a message that REGEXP matches; return it."
  (declare (indent 1) (debug t))
  `(let ((start (with-current-buffer (messages-buffer) (point-max-marker))))
     ,@body
     (llm-ert-wait-for (contexture-test--message-after start ,regexp))))

(defun contexture-test--message-after (start regexp)
  "Return the first message after START that REGEXP matches."
  (with-current-buffer (messages-buffer)
    (save-excursion
      (goto-char start)
      (when (re-search-forward regexp nil t)
        (buffer-substring-no-properties (line-beginning-position)
                                        (line-end-position))))))

(defmacro contexture-test-user-error (regexp &rest body)
  "Check that BODY ends in a `user-error' that REGEXP matches."
  (declare (indent 1) (debug t))
  `(should (string-match-p
            ,regexp (cadr (should-error (progn ,@body) :type 'user-error)))))

(defmacro contexture-test-with-mock-method (&rest body)
  "Run BODY with a TRAMP method that reaches this machine by a shell."
  (declare (indent 0) (debug t))
  `(let ((tramp-methods
          (cons '("mock" (tramp-login-program "/bin/sh")
                  (tramp-login-args (("-i")))
                  (tramp-remote-shell "/bin/sh")
                  (tramp-remote-shell-args ("-c"))
                  (tramp-connection-timeout 10))
                tramp-methods))
         (tramp-default-host "localhost")
         (tramp-persistency-file-name nil)
         (tramp-verbose 0))
     (unwind-protect (progn ,@body)
       (tramp-cleanup-all-connections))))

(defun contexture-test-write-init (name forms)
  "Write an init file with FORMS for another Emacs, and return the file's name.
NAME is that of its Emacs server, whose socket is in the folder of the test."
  (llm-ert-write-file
   "init.el"
   (mapconcat
    #'prin1-to-string
    `((setq server-name ,name server-socket-dir ,(directory-file-name llm-ert-directory)
            inhibit-startup-screen t ring-bell-function #'ignore create-lockfiles nil
            make-backup-files nil auto-save-default nil native-comp-jit-compilation nil)
      ,@forms)
    "\n")))

(defun contexture-test-process ()
  "Return the process of the connection in use."
  (oref contexture--connection process))

(defun contexture-test-busy-seconds ()
  "Return how long Emacs has computed, in seconds.
Unlike the time of a clock, this does not grow while others compute."
  (float-time (get-internal-run-time)))

(defmacro contexture-test-at-once (&rest body)
  "Run BODY and check that Emacs was not held up, for 100 ms or longer.
It neither computes for as long nor means to wait for as long.  A
collection of garbage, which may fall into it, is not BODY's fault."
  (declare (indent 0) (debug t))
  `(contexture-test--at-once (lambda () ,@body)))

(defun contexture-test--at-once (function)
  "Call FUNCTION for `contexture-test-at-once'; return its value."
  (let* ((gc-cons-threshold most-positive-fixnum)
         (longest 0)
         (noting (lambda (waiting place)
                   (lambda (&rest arguments)
                     (setq longest (max longest (or (nth place arguments) 1.0e+INF)))
                     (apply waiting arguments)))))
    (cl-letf (((symbol-function 'accept-process-output)
               (funcall noting (symbol-function 'accept-process-output) 1))
              ((symbol-function 'sleep-for)
               (funcall noting (symbol-function 'sleep-for) 0))
              ((symbol-function 'sit-for)
               (funcall noting (symbol-function 'sit-for) 0)))
      (let ((start (contexture-test-busy-seconds)))
        (prog1 (funcall function)
          (should (< (- (contexture-test-busy-seconds) start) 0.1))
          (should (< longest 0.1)))))))

(provide 'contexture-test-helper)
;;; contexture-test-helper.el ends here
