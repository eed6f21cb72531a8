;;; contexture-ert.el --- Test a package that uses Contexture  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (contexture "0.1.0"))
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; For the test suites of packages that use Contexture, and of any that
;; talk to a model or to a JSON-RPC server; load it only there.  A test
;; gets a server of its own with a stopped clock, a recorded exchange or a
;; function instead of one, and a model that says what the test has it say;
;; a folder with the files it wants; every message sent either way; and a
;; way to wait for events instead of time:
;;
;;     (ert-deftest my-add-adds ()
;;       (contexture-ert-with-files '(("a.el" . "(foo)\n"))
;;         (contexture-ert-with-server
;;           (find-file "a.el")
;;           (my-add)
;;           (contexture-ert-should-called 'add-item '(:content "(foo)\n")))))
;;
;; Whatever a test leaves behind is removed, even if it fails: servers,
;; processes, buffers, timers, hooks and folders.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'ert-x)                        ; for `ert-resource-file' and the like in suites
(require 'project)
(require 'contexture)
(require 'contexture-ert-handler)
(eval-when-compile (require 'subr-x))

(defgroup contexture-ert nil
  "Test a package that uses Contexture."
  :group 'contexture
  :prefix "contexture-ert-")

(defcustom contexture-ert-server-command nil
  "The server that tests start, as in `contexture-server-command'.
Nil means the program that the environment variable CONTEXTURE_BIN
names, or else the one that Contexture itself would find."
  :type '(choice (const :tag "Find it" nil)
                 (file :tag "Program")
                 (repeat :tag "Program and arguments" string)))

(defcustom contexture-ert-record (and (getenv "CONTEXTURE_ERT_RECORD") t)
  "Non-nil means that `contexture-ert-with-replay' records an exchange.
It then runs the test with a server, and writes the file.  The default is
t if the environment variable CONTEXTURE_ERT_RECORD is set."
  :type 'boolean)

(defconst contexture-ert-time 1700000000
  "Time on the clock of a test's server, in Unix seconds.")

(defvar contexture-ert-directory nil
  "Folder of `contexture-ert-with-files', ending in a slash, or nil.")

(defvar contexture-ert--home nil
  "Folder of the running test's server.")

(defvar contexture-ert--exchange nil
  "Exchange that the running test plays, or nil.")

(defvar contexture-ert--clock nil
  "Time on the clock of the running test's server; nil if the clock runs.")

(eval-and-compile
  (defun contexture-ert--split-keys (body)
    "Return (KEYS . FORMS) for BODY, which may begin with keywords and values."
    (let (keys)
      (while (keywordp (car body))
        (push (pop body) keys)
        (push (pop body) keys))
      (cons (nreverse keys) body))))

;;;; A server

(defmacro contexture-ert-with-server (&rest body)
  "Run BODY with a new server of its own, and end the server afterwards.
The server saves nothing, and its clock stands at
`contexture-ert-time', so ids and times are the same in each run.  The
first call starts it.  BODY may begin with keywords:

  :state FOLDER  have the server keep its state in FOLDER; t stands
                 for a folder that is deleted with the server
  :args LIST     more arguments for the server
  :time SECONDS  the time on the clock; nil means a running clock
  :tokenizer NAME
                 how the server counts tokens; the default, estimate, is
                 the fastest; nil stands for the server's own default

The user's own settings, environment and connection are untouched, and
what was watching a server before does not watch this one.
What BODY leaves behind, such as buffers and processes, is removed."
  (declare (indent 0) (debug (&rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (contexture-ert--split-keys body)))
    `(contexture-ert--call-with-server (lambda () ,@forms) ,@keys)))

(cl-defun contexture-ert--call-with-server
    (function &key state args (time contexture-ert-time) (tokenizer 'estimate))
  "Call FUNCTION with a new server.
STATE, ARGS, TIME and TOKENIZER are as in `contexture-ert-with-server'."
  (let ((command (and (contexture-ert-available-p)
                      (contexture-ert--server-command))))
    (contexture-ert--isolated
     (lambda ()
       (let ((contexture-server-command command)
             (contexture-server-args
              (append (pcase state
                        ('nil (list "--ephemeral"))
                        ('t
                         (list "--state" (concat contexture-ert--home "state")))
                        (_ (list "--state" (expand-file-name state))))
                      (and time
                           (list "--fixed-time"
                                 (concat "@" (contexture-ert--clock-file))))
                      (and tokenizer
                           (list "--tokenizer" (format "%s" tokenizer)))
                      args))
             (contexture-ert--clock time))
         (when time (contexture-ert-move-clock 0))
         (funcall function))))))

(defun contexture-ert-move-clock (seconds)
  "Move the stopped clock of the test's server forward by SECONDS.
The calls made so far still have the earlier time.  While an exchange is
played, there is no clock to move."
  (when contexture--connection
    (contexture-request 'ping))         ; the calls before it have begun then
  (unless contexture-ert--exchange
    (unless contexture-ert--clock
      (error "The clock of this server runs; only one that stands still can be moved"))
    (cl-incf contexture-ert--clock seconds)
    (let ((file (contexture-ert--clock-file)))
      ;; The server must not read half of it.
      (write-region (format "%d" contexture-ert--clock) nil (concat file ".new")
                    nil 'silent)
      (rename-file (concat file ".new") file t))))

(defun contexture-ert--clock-file ()
  "Return the file that has the time of the test's server."
  (concat contexture-ert--home "clock"))

(defun contexture-ert-available-p ()
  "Return non-nil if there is a server for tests.
Otherwise skip the running test, or fail where the environment variable
CI is set, so that no test is skipped there unseen.  Outside of tests,
return nil."
  (or (let ((command (ignore-errors (contexture-ert--server-command))))
        (and command (executable-find (car (ensure-list command))) command))
      (and (ert-running-test)
           (let ((reason "Contexture's server was not found; set CONTEXTURE_BIN to its file name"))
             (if (member (getenv "CI") '(nil "" "false" "0"))
                 (ert-skip reason)
               (ert-fail reason))))))

(defun contexture-ert--server-command ()
  "Return the server that tests start."
  (or contexture-ert-server-command (getenv "CONTEXTURE_BIN")
      (contexture--find-server)))

(defun contexture-ert--isolated (function)
  "Call FUNCTION shielded from the user's settings and connection."
  (let ((options (contexture-ert--customized 'contexture)))
    (cl-progv options
        (mapcar (lambda (option) (eval (car (get option 'standard-value)) t)) options)
      (contexture-ert--shielded function))))

(defun contexture-ert--customized (group)
  "Return the options of GROUP that the user customized.
Those that a test binds itself are left out, as are those of the group
`contexture-ert'."
  (cl-loop for (symbol widget) in (get group 'custom-group)
           if (eq widget 'custom-group)
           append (unless (eq symbol 'contexture-ert)
                    (contexture-ert--customized symbol))
           else if (and (boundp symbol) (get symbol 'standard-value)
                        (or (get symbol 'saved-value) (get symbol 'customized-value)
                            (get symbol 'theme-value))
                        (eq (default-value symbol) (default-toplevel-value symbol)))
           collect symbol))

(defun contexture-ert--shielded (function)
  "Call FUNCTION with a state and a connection of its own."
  (let* ((contexture-ert--home (contexture-ert--make-folder))
         (contexture-ert--lines nil)
         (contexture--wire-functions (list #'contexture-ert--note-line))
         (contexture--connection nil)
         (contexture-reconnect-delay 0.02)
         (contexture-request-timeout (max 10 contexture-ert-timeout))
         (contexture-add-to #'buffer-name) ; in tests, each has one context
         (contexture-providers contexture-ert--providers)
         (contexture--last-manager nil)
         (contexture--last-changed nil)
         (contexture--labels (make-hash-table :test #'equal))
         (contexture--totals (make-hash-table :test #'equal))
         (contexture--project-roots (make-hash-table :test #'equal))
         (contexture-notification-functions nil)
         (contexture-connected-hook nil)
         (contexture-disconnected-hook nil)
         (contexture--watched-topics nil)
         (process-environment (append (contexture-ert--environment)
                                      process-environment))
         (inhibit-message t)
         (kill-ring nil))
    (contexture-ert--cleaning-up
     contexture-ert--home
     (lambda () (contexture-ert--showing-messages function)))))

(defun contexture-ert--environment ()
  "Return the environment that confines a server to its test."
  (nconc (mapcar (lambda (name) (concat name "=" contexture-ert--home name))
                 '("XDG_CONFIG_HOME" "XDG_STATE_HOME" "XDG_DATA_HOME"
                   "XDG_CACHE_HOME"))
         (list (concat "XDG_RUNTIME_DIR=" contexture-ert--home))
         ;; A name without a value is unset.  Tests inside of tests need that
         ;; of the server.
         (cl-loop for entry in process-environment
                  when (and (string-match "\\`CONTEXTURE_[^=]*" entry)
                            (not (equal (match-string 0 entry) "CONTEXTURE_BIN")))
                  collect (match-string 0 entry))))

(defun contexture-ert--make-folder ()
  "Return the name of a new folder, ending in a slash."
  (file-name-as-directory (file-truename (make-temp-file "contexture" t))))

(defun contexture-ert--cleaning-up (folder function)
  "Call FUNCTION; then delete FOLDER and everything else that is new."
  (let ((snapshot (contexture-ert--snapshot)))
    (unwind-protect (funcall function)
      (ignore-errors
        (let ((processes (plist-get snapshot :processes)))
          (unless (and contexture--connection
                       (memq (oref contexture--connection process) processes))
            (contexture-disconnect))
          (dolist (process (cl-set-difference (process-list) processes))
            (when-let* ((connection
                         (process-get process 'contexture-connection)))
              (jsonrpc-shutdown connection)))))
      (contexture-ert--remove-new snapshot)
      (ignore-errors (delete-directory folder t)))))

(defun contexture-ert--showing-messages (function)
  "Call FUNCTION; if it fails, have ERT show the messages of the test."
  (let ((log (with-current-buffer (get-buffer-create contexture--log-buffer)
               (copy-marker (point-max)))))
    (contexture-ert--explaining
     (lambda ()
       (contexture-ert--explanation
        (or (contexture--with-live-buffer (marker-buffer log)
              (buffer-substring-no-properties log (point-max)))
            "")))
     function)))

;;;; Files

(defmacro contexture-ert-with-files (files &rest body)
  "Run BODY in a new folder with FILES, and delete the folder afterwards.
FILES is an alist from the name of a file in that folder to its text;
a name that ends in a slash makes a folder.  `default-directory' and
`contexture-ert-directory' are the new folder.  It is a project for
project.el, unless BODY begins with :project nil.  Buffers that BODY
creates are killed."
  (declare (indent 1) (debug (form &rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (contexture-ert--split-keys body)))
    `(contexture-ert--call-with-files ,files (lambda () ,@forms) ,@keys)))

(cl-defun contexture-ert--call-with-files (files function &key (project t))
  "Call FUNCTION in a new folder with FILES.
The folder is a project if PROJECT is non-nil."
  (let* ((folder (contexture-ert--make-folder))
         (contexture-ert-directory folder)
         (default-directory folder)
         (contexture--project-roots (make-hash-table :test #'equal))
         (project-find-functions
          (if project
              (list (lambda (directory)
                      (when (file-in-directory-p directory folder)
                        (cons 'transient folder))))
            project-find-functions)))
    (contexture-ert--cleaning-up
     folder
     (lambda ()
       (pcase-dolist (`(,name . ,text) files)
         (contexture-ert-write-file name text))
       (funcall function)))))

(defun contexture-ert-write-file (name text)
  "Write TEXT to the file NAME in the test's folder; return its full name.
Missing folders are created.  If NAME ends in a slash, it is a folder,
and TEXT is nil."
  (let ((file (expand-file-name name contexture-ert-directory)))
    (unless (and contexture-ert-directory
                 (string-prefix-p contexture-ert-directory file))
      (error "%s is not in the folder of `contexture-ert-with-files'" name))
    (make-directory (file-name-directory file) t)
    (unless (directory-name-p file)
      (let ((coding-system-for-write 'utf-8-unix))
        (write-region text nil file nil 'silent)))
    file))

;;;; Exchanges

(defmacro contexture-ert-with-replay (file &rest body)
  "Run BODY against the exchange recorded in FILE, without a server.
The test fails if BODY makes calls that FILE does not have, makes them in
another order, or leaves some out.  The order of keys, and keys whose
value is nil, make no difference.  With `contexture-ert-record', run
BODY with a server, and write FILE.

If BODY begins with :stepwise t, each message of the server waits for
`contexture-ert-next-message'.  Other keywords are for the server that
records (see `contexture-ert-with-server')."
  (declare (indent 1) (debug (form &rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (contexture-ert--split-keys body)))
    `(contexture-ert--call-with-replay ,file (lambda () ,@forms) ,@keys)))

(cl-defun contexture-ert--call-with-replay (file function &rest keys &key stepwise
                                                 &allow-other-keys)
  "Call FUNCTION against the exchange in FILE, or record FILE again.
STEPWISE and other KEYS are as in `contexture-ert-with-replay'."
  (if contexture-ert-record
      (apply #'contexture-ert--call-recording file function
             (contexture-ert--plist-without keys :stepwise))
    (contexture-ert--isolated
     (lambda ()
       (let* ((exchange (contexture-ert--read-exchange
                         file contexture-ert-directory))
              (contexture-ert--exchange exchange)
              (socket (concat contexture-ert--home "socket"))
              (contexture--live-off t)
              (contexture-server-command "no server, but an exchange"))
         (setf (contexture-ert--exchange-stepwise exchange) stepwise)
         (contexture-ert--serve-exchange exchange socket)
         (setq contexture--connection
               (contexture--new-connection (list :unix socket)))
         (contexture-ert--number-calls contexture--connection)
         (prog1 (funcall function)
           (setf (contexture-ert--exchange-stepwise exchange) nil)
           (while (contexture-ert--exchange-held exchange)
             (funcall (pop (contexture-ert--exchange-held exchange))))
           (contexture-ert--check-played exchange)))))))

(defun contexture-ert-next-message ()
  "Let the next message of a stepwise replay through, and return it.
Wait until it is that message's turn.  While an exchange is recorded,
do nothing."
  (unless contexture-ert-record
    (contexture-ert-wait-for
        (contexture-ert--exchange-held contexture-ert--exchange)
      :message (lambda ()
                 (list 'next-comes
                       (cadar (contexture-ert--exchange-entries
                               contexture-ert--exchange)))))
    (let ((line (funcall (pop (contexture-ert--exchange-held
                               contexture-ert--exchange)))))
      (contexture-ert--decode line))))

(defun contexture-ert--check-played (exchange)
  "Fail unless EXCHANGE was played to its end as recorded."
  (let ((grace 10))            ; a notification may still be on its way
    (contexture-ert-wait-until
     (lambda ()
       (or (contexture-ert--exchange-problem exchange)
           (and (contexture-ert--quiet-p)
                (or (null (contexture-ert--exchange-entries exchange))
                    (< (cl-decf grace) 0)))))
     :message "a call was not answered")
    (when-let* ((problem (contexture-ert--exchange-problem exchange)))
      (ert-fail problem))
    (when-let* ((entry (car (contexture-ert--exchange-entries exchange))))
      (ert-fail (format "%s:%d: never said: %s"
                        (contexture-ert--exchange-file exchange)
                        (nth 2 entry) (cadr entry))))))

(defmacro contexture-ert-with-recording (file &rest body)
  "Run BODY with a new server, and record the exchange in FILE.
FILE is then ready for `contexture-ert-with-replay'.  Nothing is written
if BODY fails.  Comments at the head of an older FILE stay.  BODY may
begin with the keywords of `contexture-ert-with-server'."
  (declare (indent 1) (debug (form &rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (contexture-ert--split-keys body)))
    `(contexture-ert--call-recording ,file (lambda () ,@forms) ,@keys)))

(defun contexture-ert--call-recording (file function &rest keys)
  "Call FUNCTION with a new server, and write the exchange to FILE.
KEYS are those of `contexture-ert-with-server'."
  (apply #'contexture-ert--call-with-server
         (lambda ()
           (contexture-ert--number-calls (contexture-current-connection))
           (prog1 (let ((contexture--live-off t)) (funcall function))
             (unless contexture--connection
               (ert-fail (list 'nothing-to-record file)))
             (contexture-ert-wait-for (contexture-ert--quiet-p)
               :message "a call was not answered")
             (contexture-request 'ping) ; by its answer, all else has arrived
             (contexture-ert--write-exchange
              file (contexture-ert--recordable (reverse contexture-ert--lines))
              (list (cons contexture-ert-directory contexture-ert--placeholder)
                    (cons contexture-ert--home
                          contexture-ert--home-placeholder)))))
         keys))

(defun contexture-ert-record-again (selector)
  "Run the tests that SELECTOR matches, and record their exchanges again.
SELECTOR is as in `ert'; interactively, it is a regexp for their names.
Read the difference before you commit it."
  (interactive (list (read-regexp "Record again the tests that match: ")))
  (let ((contexture-ert-record t))
    (if noninteractive
        (ert-run-tests-batch selector)
      (ert selector))))

(provide 'contexture-ert)
;;; contexture-ert.el ends here
