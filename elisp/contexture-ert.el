;;; contexture-ert.el --- Test a package that uses Contexture  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (contexture "0.1.0") (llm-ert "0.1.0"))
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; For the test suites of packages that use Contexture; load it only there.
;; It adds what is about Contexture to llm-ert, which has the models, the
;; files, the steps and the waiting.  A test gets a server of its own with a
;; stopped clock, a recorded exchange or a function instead of one; and
;; every message sent either way:
;;
;;     (ert-deftest my-add-adds ()
;;       (llm-ert-with-files '(("a.el" . "(foo)\n"))
;;         (contexture-ert-with-server
;;           (find-file "a.el")
;;           (my-add)
;;           (llm-ert-should-called 'add-item '(:content "(foo)\n")))))
;;
;; Whatever a test leaves behind is removed, even if it fails: servers,
;; processes, buffers, timers, hooks and folders.

;;; Code:

(require 'ert-x)                        ; for `ert-resource-file' and the like in suites
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

(defconst contexture-ert-time 1700000000
  "Time on the clock of a test's server, in Unix seconds.")

(defvar contexture-ert--home nil
  "Folder of the running test's server.")

(defvar contexture-ert--exchange nil
  "Exchange that the running test plays, or nil.")

(defvar contexture-ert--clock nil
  "Time on the clock of the running test's server; nil if the clock runs.")

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

The user's own settings, environment and connection are untouched.
Functions that watched a server before do not watch this one.  What BODY
leaves behind, such as buffers and processes, is removed."
  (declare (indent 0) (debug (&rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (llm-ert--split-keys body)))
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
  (let* ((contexture-ert--home (llm-ert--make-folder))
         (llm-ert--said nil)
         (llm-ert--parse #'contexture-ert--decode)
         (llm-ert--quiet #'contexture-ert--quiet-p)
         (contexture--wire-functions (list #'contexture-ert--note-line))
         (contexture--connection nil)
         (contexture-reconnect-delay 0.02)
         (contexture-request-timeout (max 10 llm-ert-timeout))
         (contexture-add-to #'buffer-name) ; in tests, each has one context
         (contexture-providers (contexture-ert--model-providers))
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
    (llm-ert--removing-new
     (lambda ()
       (let ((processes (process-list)))
         (unwind-protect (contexture-ert--showing-messages function)
           (ignore-errors (contexture-ert--disconnect processes)))))
     (lambda () (delete-directory contexture-ert--home t)))))

(defun contexture-ert--disconnect (processes)
  "End the connections whose processes are not among PROCESSES."
  (unless (and contexture--connection
               (memq (oref contexture--connection process) processes))
    (contexture-disconnect))
  (dolist (process (cl-set-difference (process-list) processes))
    (when-let* ((connection (process-get process 'contexture-connection)))
      (jsonrpc-shutdown connection))))

(defun contexture-ert--note-line (direction line)
  "Record that LINE went in DIRECTION, `sent' or `received'."
  (llm-ert--note direction (contexture--trim-right line "\n")))

;;;; Models

(defun contexture-ert--model-providers ()
  "Return the value of `contexture-providers' for the model of the test."
  (when llm-ert--model
    (let ((llm-ert--peer (llm-ert--model-listener llm-ert--model)))
      (list (list "model" :kind 'openai :model "model" :default t
                  :base-url (concat (llm-ert-url) "/v1"))))))

(defun contexture-ert--tell-of-model ()
  "Tell the server of the test, if one runs, of the model of the test."
  (when contexture-ert--home
    (setq contexture-providers (contexture-ert--model-providers))
    (when (and llm-ert--model contexture--connection (contexture-running-p))
      (contexture-provider--tell-all contexture--connection))))

(add-hook 'llm-ert-model-hook #'contexture-ert--tell-of-model)

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

(defun contexture-ert--showing-messages (function)
  "Call FUNCTION; if it fails, have ERT show the messages of the test."
  (let ((log (with-current-buffer (get-buffer-create contexture--log-buffer)
               (copy-marker (point-max)))))
    (llm-ert--explaining
     (lambda ()
       (concat
        (llm-ert--messages-explained)
        (llm-ert--paragraph
         "The server wrote"
         (split-string (contexture--trim
                        (or (contexture--with-live-buffer (marker-buffer log)
                                                          (buffer-substring-no-properties log (point-max)))
                            ""))
                       "\n" t))))
     function)))

;;;; Exchanges

(defmacro contexture-ert-with-replay (file &rest body)
  "Run BODY against the exchange recorded in FILE, without a server.
The test fails if BODY makes calls that FILE does not have, makes them in
another order, or leaves some out.  The order of keys, and keys whose
value is nil, make no difference.  With `llm-ert-record', run
BODY with a server, and write FILE.

If BODY begins with :stepwise t, each message of the server waits for
`contexture-ert-next-message'.  Other keywords are for the server that
records (see `contexture-ert-with-server')."
  (declare (indent 1) (debug (form &rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (llm-ert--split-keys body)))
    `(contexture-ert--call-with-replay ,file (lambda () ,@forms) ,@keys)))

(cl-defun contexture-ert--call-with-replay (file function &rest keys &key stepwise
                                                 &allow-other-keys)
  "Call FUNCTION against the exchange in FILE, or record FILE again.
STEPWISE and other KEYS are as in `contexture-ert-with-replay'."
  (if llm-ert-record
      (apply #'contexture-ert--call-recording file function
             (llm-ert--plist-without keys :stepwise))
    (contexture-ert--isolated
     (lambda ()
       (let* ((exchange (contexture-ert--read-exchange
                         file llm-ert-directory))
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
  (unless llm-ert-record
    (llm-ert-wait-for
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
    (llm-ert-wait-until
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
  (pcase-let ((`(,keys . ,forms) (llm-ert--split-keys body)))
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
             (llm-ert-wait-for (contexture-ert--quiet-p)
               :message "a call was not answered")
             (contexture-request 'ping) ; by its answer, all else has arrived
             (contexture-ert--write-exchange
              file (contexture-ert--recordable (reverse llm-ert--said))
              (list (cons llm-ert-directory contexture-ert--placeholder)
                    (cons contexture-ert--home
                          contexture-ert--home-placeholder)))))
         keys))

(provide 'contexture-ert)
;;; contexture-ert.el ends here
