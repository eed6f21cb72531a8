;;; contexture-rpc.el --- Calls to the Contexture server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The first call to the server loads this file, finds the server and
;; starts it; `contexture-connect' joins one that runs.
;; `contexture-request-async' is for calls in general, `contexture-request'
;; for those whose answer the user waits for, and `contexture-notify' for
;; messages that have no answer.

;;; Code:

(require 'cl-lib)
(require 'eieio)
(require 'jsonrpc)
(require 'contexture)
(require 'contexture-generated)
(eval-when-compile (require 'subr-x))

(declare-function contexture-live--resume "contexture-marks" (same))
(declare-function contexture-live--edited-names "contexture-marks" ())
(declare-function contexture-live--adopt-new "contexture-marks" (items))
(declare-function contexture-live--changed "contexture-marks" (method params))
(declare-function contexture-live--push "contexture-marks" ())
(autoload 'contexture-provider--tell-all "contexture-doctor")
(defvar contexture-provider--told)
(autoload 'contexture-tools--connected "contexture-tools")
(declare-function contexture-live--disconnected "contexture-marks" ())

;;; Calls to the Contexture server

;; A call may reach the server twice (see below), so every call that changes
;; something carries a `:request-key'.  By that, the server recognises a call
;; that it has answered, and repeats the answer.
;;
;; `contexture-request-batch' makes many calls in one, and
;; `contexture-request-pages' fetches a long list in short answers.

(defconst contexture--directory
  (file-name-directory (or load-file-name buffer-file-name default-directory))
  "Folder of this package.")

(defconst contexture--showing-methods
  '(list-items render-items context-to-string read-file repo-map refresh-items
    add-item add-file add-tree update-items undo redo save-set move-items batch
    chat build-window count-window session-report process-turn take-notes
    summarize-session get-context add-context build-context
    summarize-context auto-manage-context)
  "Methods that show or send items, or compare them with others.
Before a call of these, Emacs tells the server what changed in buffers; the
server begins a connection's calls in order.  The list ends with the
contract's names for some.")

(defvar contexture--request-key-count 0
  "Number of request keys that this Emacs has made.")

;;;; The connection in use

(defun contexture-current-connection ()
  "Return the connection in use; create it if there is none."
  (or contexture--connection
      (setq contexture--connection
            (contexture--new-connection (contexture--server-command)))))

(defun contexture--server-command ()
  "Return the program of the server and its arguments as a list.
Signal an error if there is no such program."
  (append (if contexture-server-command
              (pcase-let ((`(,name . ,args) (ensure-list contexture-server-command)))
                (cons (expand-file-name
                       (or (executable-find name)
                           (contexture--user-error "There is no program %s; set \
`contexture-server-command' to the server's program, or to nil so that Emacs finds it"
                                                   name)))
                      args))
            (list (contexture--find-server)))
          (list "serve" "--stdio")
          contexture-server-args))

(defun contexture--places-beside ()
  "Return the places of a server of this package's version, from its folder.
Only what `make install' installed has a program four folders up.  In other
places, such as a checkout in /tmp, that would be a stranger's program."
  `("../target/release/contexture" "../target/debug/contexture" ; in the sources
    ,@(and (string-suffix-p "/share/emacs/site-lisp/contexture/" contexture--directory)
           '("../../../../bin/contexture"))))

(defconst contexture--places-at-home
  '("~/.local/bin/contexture" "~/.cargo/bin/contexture")
  "Places of the server whose folders may not be in the variable `exec-path'.")

(defun contexture--installed-server ()
  "Return the name of the program that `contexture-install-server' installs.
It is outside of the package, whose folder an upgrade deletes, and there is
one for each version."
  (expand-file-name (format "contexture/server-%s/contexture" contexture--version)
                    (let ((data (getenv "XDG_DATA_HOME")))
                      (if (and data (string-prefix-p "/" data)) data "~/.local/share"))))

(defun contexture--server-in (places)
  "Return PLACES, which are relative to this package, as absolute file names."
  (mapcar (lambda (place) (expand-file-name place contexture--directory)) places))

(defun contexture--find-server ()
  "Return the file name of the server's program.
If it is not installed, signal an error that says how to install it."
  (or (cl-find-if #'file-executable-p
                  (append (contexture--server-in (contexture--places-beside))
                          (list (contexture--installed-server))))
      (executable-find "contexture")
      (cl-find-if #'file-executable-p (contexture--server-in contexture--places-at-home))
      (user-error "Contexture's server is not installed; \
M-x contexture-install-server installs it")))

;;;; Calls

(defconst contexture--patience 0.5
  "Number of seconds after which to say that the server has not answered yet.")

(cl-defun contexture-request-async (method &optional params &key success error)
  "Call METHOD, a symbol, with PARAMS, a plist, and return at once.
SUCCESS is called with the result, or ERROR with a plist of `:code',
`:message' and `:data', both outside of any process filter.  Without ERROR,
the error's message is shown.  While the server cannot be reached, Emacs
keeps the call and sends it later.  Return the call's id."
  (let ((success (or success #'ignore))
        (failure (or error #'contexture-show-error)))
    (contexture--call (contexture-current-connection)
                      method (contexture--with-request-key method params)
                      (lambda (result)
                        (contexture--later #'contexture--hand-answer method success result))
                      (lambda (problem) (contexture--later failure problem)))))

(defun contexture--hand-answer (method function answer)
  "Call FUNCTION with ANSWER, which a server gave to METHOD.
If that is of a wrong type, say so."
  (condition-case-unless-debug problem
      (funcall function answer)
    ((wrong-type-argument args-out-of-range)
     (contexture--message "Contexture: the server's answer to %s is not as promised (%s)"
                          (format "%s" method) (error-message-string problem)))))

(cl-defun contexture--request-patiently (method params &key success error)
  "Call METHOD with PARAMS for a command, as `contexture-request-async' does.
If neither SUCCESS nor ERROR is called soon, show a message that the server
has not answered yet."
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

(defun contexture--tell-waiting ()
  "Show that the server has not answered yet, if Emacs can reach it."
  (when (contexture--reached-p)
    (message contexture--waiting)))

(defun contexture--tell-no-longer ()
  "Clear the echo area if it says that the server has not answered yet."
  (when (equal (current-message) contexture--waiting)
    (message nil)))

(cl-defun contexture-request (method &optional params
                                     &key (timeout contexture-request-timeout))
  "Call METHOD, a symbol, with PARAMS, a plist, and return the result.
Signal `contexture-error' if the server answers with an error, or does not
answer within TIMEOUT seconds; the call is then cancelled, as it is if the
user quits.  Do not use this in timers and filters, where waiting blocks
everything else."
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
unless ATOMIC is non-nil: then the first failure undoes what the calls
before it changed, and its error is signaled."
  (plist-get (contexture-request 'batch (contexture--batch calls atomic))
             :results))

(cl-defun contexture-request-batch-async (calls &key atomic step success error)
  "Make CALLS in one message and return at once.
SUCCESS is called with their outcomes, as `contexture-request-batch'
returns them for CALLS and ATOMIC; ERROR is as for
`contexture-request-async'.  STEP is the version that an earlier call gave a
context; undo takes back both calls together."
  (contexture--request-patiently
   'batch (append (contexture--batch calls atomic) (and step (list :step step)))
   :success (lambda (result)
              (funcall (or success #'ignore) (plist-get result :results)))
   :error error))

(defun contexture--batch (calls atomic)
  "Return the parameters of the method `batch' for CALLS and ATOMIC.
Both are as for `contexture-request-batch'."
  `(:calls ,(mapcar (lambda (call)
                      (list :method (symbol-name (car call)) :params (cdr call)))
                    calls)
    ,@(and atomic '(:atomic t))))

(defconst contexture--page-bytes 65536
  "Maximum size, in bytes, of the pages that `contexture-request-pages' fetches.")

(cl-defun contexture-request-pages (method &optional params &key success error)
  "Fetch the whole list that METHOD with PARAMS returns, in short pages.
SUCCESS is called with the list; ERROR is as for `contexture-request-async'.
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
                          for id = (plist-get item :id)
                          collect (or (contexture--entry :id id whole) item))
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

(defun contexture--with-request-key (method params)
  "Return PARAMS, with a request key if METHOD changes something.
A key that is there already stays."
  (if (and (memq method contexture--changing-methods)
           (not (plist-member params :request-key)))
      (append params (list :request-key (contexture--make-request-key)))
    params))

(defun contexture--make-request-key ()
  "Return a new request key, which no other call of any Emacs carries."
  (format "emacs-%s-%d" (contexture--emacs-number)
          (cl-incf contexture--request-key-count)))

;;;; Leaving the server

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

;;; A server that is kept reachable

;; A connection outlives its process.  Each call is kept until it is
;; answered.  When the server goes away, Emacs starts it (or connects to it)
;; again, greets it, and sends the unanswered calls once more, in order.  So
;; a call may arrive twice.  This part handles framing, waiting and failures; the
;; only methods it knows are those of the greeting.
;;
;; Nothing here waits for the server to read.  When the pipe is full,
;; `process-send-string' queues the rest and sleeps.  A timer throws out
;; of that sleep at once, and sending the empty string later resumes the
;; queue.  Measured on Emacs 28.2: no byte is lost or doubled, and a full
;; pipe costs Emacs about 10 microseconds per attempt.
;;
;; Emacs has no better way.  Without the throw, a stopped server stops Emacs,
;; too, and one that reads at once costs 20 ms for each 64 KB, 300 ms for
;; a megabyte.  In a thread of its own, `process-send-string' runs the
;; timers of others in that thread; if they are bound away there, none runs
;; anywhere while it waits.

(defvar contexture--wire-functions nil
  "Abnormal hook run for every line that is sent or received.
Each function is called with `sent' or `received', and the line.")

(defvar contexture--own-call nil
  "Non-nil while making a call that must not be repeated after a reconnection.
Such a call is made again by the connection itself, or is valid for one
server only.")

;;;; The connection

(defclass contexture-connection (jsonrpc-connection)
  ((target :initarg :target
           :documentation "A command as (PROGRAM . ARGS), (:unix PATH) or (:tcp HOST PORT).")
   (process :initform nil
            :documentation "Process of the server or of the socket, or nil.")
   (state :initform 'down
          :documentation "One of `down', `starting', `ready' and `closed'.")
   (reason :initform nil
           :documentation "Reason why the connection last went down, a string.")
   (info :initform nil
         :documentation "Result of `initialize', a plist.")
   (inbox :initarg :inbox
          :documentation "Buffer with what was read and not handled yet.")
   (handled :initform 1
            :documentation "Position in the inbox of the first line not handled yet.")
   (whole :initform 1
          :documentation "Position in the inbox after the last whole line.")
   (gather-timer :initform nil
                 :documentation "Timer that handles pieces of an answer, or nil.")
   (unanswered :initform (make-hash-table)
               :documentation "Hash table from the id of each unanswered call to the call.")
   (unanswered-size :initform 0
                    :documentation "Number of characters in the lines of the unanswered calls.")
   (last-id :initform nil
            :documentation "Id of the call that was made last.")
   (outbox :initform nil
           :documentation "Lines not yet written to the process, as (ID . LINE), the oldest first.")
   (full :initform nil
         :documentation "Non-nil while the process holds text that did not fit into its pipe.")
   (attempts :initform 0
             :documentation "Number of attempts to write since the last success.")
   (write-timer :initform nil)
   (retry-timer :initform nil)
   (useful :initform nil
           :documentation "Non-nil if this process has answered a call.")
   (failures :initform 0
             :documentation "Number of processes in a row that answered no call.")
   (silent :initform nil
           :documentation "Non-nil if a command waited in vain and nothing has come since.")
   (told :initform nil
         :documentation "What the user was told since the last success: `lost', `failed' or nil.")
   (news :initform nil
         :documentation "Notifications not yet delivered, the newest first.")
   (subscribed :initform nil
               :documentation "Topics of the last subscription on this process, or nil."))
  :documentation "Connection to a server that is made again when it is lost.")

(cl-defstruct (contexture--call (:constructor contexture--make-call)
                                (:copier nil))
  "A call that has no answer yet.
ID is its id, METHOD its method, and LINE the text to send.  OWN is the
value of `contexture--own-call' when it was made.  DEATHS counts how often
the server died while this was the oldest unanswered call."
  id method line own (deaths 0))

(defun contexture--new-connection (target)
  "Return a new connection for TARGET, which is not connected yet.
TARGET is as in the class `contexture-connection'."
  (let* ((size contexture-events-buffer-size)
         (new (fboundp 'jsonrpc-convert-from-endpoint)) ; jsonrpc 1.0.24, Emacs 30
         (inbox (generate-new-buffer " *contexture inbox*"))
         (connection
          (apply #'make-instance 'contexture-connection
                 :name "contexture" :target target :inbox inbox
                 :notification-dispatcher #'contexture--queue-news
                 (if new
                     (list :events-buffer-config (list :size size :format 'lisp))
                   (list :events-buffer-scrollback-size size)))))
    ;; Newer versions make a buffer even if they put nothing there: hide it.
    (when (and new (<= size 0))
      (setf (slot-value connection '-events-buffer)
            (get-buffer-create " *contexture events*" t)))
    (with-current-buffer inbox
      (setq case-fold-search nil)
      (setq-local inhibit-modification-hooks t))
    connection))

(defun contexture--reached-p ()
  "Return non-nil if a server is connected, or is being connected."
  (and contexture--connection
       (memq (oref contexture--connection state) '(starting ready))))

(cl-defmethod jsonrpc-running-p ((connection contexture-connection))
  "Return non-nil if CONNECTION has reached its server."
  (eq (oref connection state) 'ready))

;;;; Starting, greeting, starting again

(defun contexture--start (connection)
  "Start to connect CONNECTION to its server, without waiting."
  (when-let* ((timer (oref connection retry-timer)))
    (cancel-timer timer)
    (oset connection retry-timer nil))
  (oset connection state 'starting)
  (condition-case problem
      (let ((process (contexture--open (oref connection target))))
        (process-put process 'contexture-connection connection)
        (set-process-filter process #'contexture--filter)
        (set-process-sentinel process #'contexture--sentinel)
        (oset connection process process)
        (when (memq (process-status process) '(run open))
          (contexture--greet connection)))
    (error (contexture--went-down connection (contexture--open-problem problem)))))

(defun contexture--open (target)
  "Return a new process for TARGET: the server, or a socket to it.
TARGET is as in the class `contexture-connection'."
  (with-temp-buffer                  ; away from buffer-local environments
    (let ((default-directory "/")    ; which always exists and is local
          (process-adaptive-read-buffering nil)
          (read-process-output-max (max read-process-output-max 1048576)))
      (pcase target
        (`(:unix ,path)
         (make-network-process :name "contexture" :family 'local
                               :service path :coding 'utf-8-unix :noquery t))
        (`(:tcp ,host ,port)
         (make-network-process :name "contexture" :host host :service port
                               :coding 'utf-8-unix :noquery t :nowait t))
        (_
         (let* ((log (contexture--log-pipe))
                (process (make-process
                          :name "contexture"
                          :command (contexture--unbroken target)
                          :connection-type 'pipe :coding 'utf-8-unix
                          :noquery t :stderr log)))
           (process-put process 'contexture-log log)
           process))))))

(defun contexture--open-problem (problem)
  "Return the message of PROBLEM, an error that `contexture--open' signaled."
  ;; Leave out the arguments of `make-network-process'.
  (replace-regexp-in-string ", :name, .*\\'" "" (error-message-string problem)))

(defconst contexture--outliving
  "exec 3<&0; \"$@\" 3<&-; status=$?
(until cat || [ $? -ne 1 ]; do sleep 0.01; done) <&3 >/dev/null 2>&1 &
exit $status"
  "Shell script that runs a program, and then reads on in its place.
The reading process ends when Emacs closes the pipe.  If the program made
the pipe non-blocking, cat fails whenever the pipe is empty.")

(defun contexture--unbroken (command)
  "Return COMMAND, wrapped for a batch Emacs so that its input pipe never breaks.
Unlike an interactive Emacs, a batch Emacs does not ignore SIGPIPE: it
would end if it wrote just after the server died.  Signal an error if
there is no such program."
  (unless (executable-find (car command)) ; a fork that cannot run it dies at once
    (signal 'file-missing
            (list "Searching for program" "No such program" (car command))))
  (if (and noninteractive (file-executable-p "/bin/sh"))
      (append (list "/bin/sh" "-c" contexture--outliving "sh") command)
    command))

(defun contexture--reachable-p (process)
  "Return non-nil if PROCESS can be written to, as far as Emacs knows.
In a batch Emacs, find out whether a socket was closed, since that Emacs
would end if it wrote there (see `contexture--unbroken')."
  (when (and noninteractive (eq (process-type process) 'network))
    (let ((filter (process-filter process))
          (connection (process-get process 'contexture-connection)))
      (set-process-filter
       process (lambda (_ chunk) (contexture--collect connection chunk)))
      (accept-process-output process 0 nil 0)
      (set-process-filter process filter)
      (contexture--later #'contexture--drain connection)))
  (memq (process-status process) '(run open)))

(defun contexture--delete-process (process)
  "Delete PROCESS and the pipe of its log, without a call of its sentinel."
  (set-process-sentinel process #'ignore)
  (delete-process process)
  (when-let* ((log (process-get process 'contexture-log)))
    (delete-process log)))

(defun contexture--greet (connection)
  "Greet the server on CONNECTION; the connection is ready once it has answered."
  (let ((contexture--own-call t)
        (secret (contexture--secret (oref connection target))))
    (when secret
      (contexture--write connection nil (concat secret "\n")))
    (contexture--call connection 'initialize nil
                      (apply-partially #'contexture--greeted connection)
                      (lambda (_) (contexture--ready connection nil)))))

(defun contexture--greeted (connection info)
  "Prepare CONNECTION, whose server answered the greeting with INFO.
Ask the server for the items of edited buffers: the unsaved texts of these
have to reach it before the calls that wait."
  (let ((names (and (fboundp 'contexture-live--edited-names)
                    (eq connection contexture--connection)
                    (contexture-live--edited-names)))
        (contexture--own-call t))
    (if (null names)
        (contexture--ready connection info)
      (contexture--call connection 'list-items (list :filenames names)
                        (apply-partially #'contexture--ready connection info)
                        (lambda (_) (contexture--ready connection info))))))

(defun contexture--secret (target)
  "Return the secret to send first to a server at TARGET, or nil for none.
Only a server on another machine gets it, from `contexture-secret-file'."
  (pcase target
    (`(:tcp ,host ,_)
     (let ((file (expand-file-name contexture-secret-file)))
       (when (and (not (member host '("localhost" "127.0.0.1" "::1")))
                  (file-readable-p file))
         (with-temp-buffer
           (insert-file-contents file)
           (buffer-substring (point) (line-end-position))))))))

(defun contexture--follows-buffers-p ()
  "Return non-nil if items follow buffers."
  (or (bound-and-true-p contexture-live--buffers)
      (bound-and-true-p contexture-live--copies)))

(defun contexture--ready (connection info &optional items)
  "Make CONNECTION ready: record INFO about its server, and send waiting calls.
INFO is the answer to the greeting, or nil.  ITEMS are the items of edited
buffers, whose unsaved texts are sent before the calls."
  (let ((waiting (hash-table-count (oref connection unanswered))))
    (oset connection state 'ready)
    (when (and (contexture--follows-buffers-p)
               (eq connection contexture--connection))
      (contexture-live--resume
       (let ((state (plist-get info :state)))
         (and state (equal state (plist-get (oref connection info) :state))))))
    (oset connection info info)
    (when (and (oref connection told) (> waiting 0))
      (contexture--message "Contexture: the server is back; %s sent to it"
               (contexture--count waiting "waiting call")))
    (oset connection told nil)
    (dolist (notice (plist-get info :notices))
      (contexture--message "Contexture: %s" notice))
    (contexture--subscribe connection)
    (setq contexture-provider--told nil) ; this server knows none of them
    (when contexture-providers
      (contexture-provider--tell-all connection))
    (when (and (or contexture-tools (featurep 'contexture-tools))
               (eq connection contexture--connection))
      (contexture-tools--connected connection))
    (when (and items (eq connection contexture--connection))
      (contexture-live--adopt-new items))
    (contexture--resend connection)
    (when (and (fboundp 'contexture-live--connected)
               (eq connection contexture--connection))
      (contexture--later #'contexture-live--connected))
    (contexture--later #'run-hooks 'contexture-connected-hook)))

(defun contexture--subscribe (connection)
  "Subscribe on CONNECTION to all notifications that some function watches.
Do nothing if the connection is not ready, or was asked for the same last."
  (let ((topics (contexture--wanted-topics)))
    (when (and (jsonrpc-running-p connection)
               (not (equal topics (oref connection subscribed))))
      (oset connection subscribed topics)
      (contexture--subscribe-to
       connection topics
       (lambda (_)
         (contexture--message
          "Contexture: the server is older than this package, so it does not tell Emacs \
of every change; update the server, then use M-x contexture-disconnect")
         ;; Every server has this topic.
         (contexture--subscribe-to connection '("context-changed")
                                   #'contexture-show-error))))))

(defun contexture--subscribe-to (connection topics refused)
  "Subscribe on CONNECTION to TOPICS; if that fails, call REFUSED with the error."
  (let ((contexture--own-call t))
    (contexture--call connection 'subscribe (list :topics topics) #'ignore refused)))

(defun contexture--resend (connection)
  "Send CONNECTION's unanswered calls, the oldest first.
If the server has died too often during the oldest one, let that fail."
  (let ((calls (cl-remove-if #'contexture--call-own
                             (contexture--unanswered-calls connection))))
    (when-let* ((oldest (car calls)))
      (when (>= (contexture--call-deaths oldest) contexture-resend-limit)
        (pop calls)
        (contexture--settle
         connection (contexture--call-id oldest)
         (list :code -32603
               :message (format "the server died %d times during this call, \
so the call was given up: %s"
                                (contexture--call-deaths oldest)
                                (contexture--call-method oldest))))))
    (dolist (call calls)
      (contexture--send-call connection call))))

(defun contexture--unanswered-calls (connection)
  "Return CONNECTION's unanswered calls, the oldest first."
  (sort (hash-table-values (oref connection unanswered))
        (lambda (a b) (< (contexture--call-id a) (contexture--call-id b)))))

(defun contexture--sentinel (process event)
  "Handle EVENT, a change of the status of PROCESS."
  (when-let* ((connection (process-get process 'contexture-connection)))
    (when (eq process (oref connection process))
      (condition-case problem
          (pcase (process-status process)
            ('open (contexture--greet connection))
            ('run (contexture--pump connection))
            ((or 'stop 'connect))
            (_ (contexture--went-down connection (contexture--trim event))))
        (error (contexture--complain problem))))))

(defun contexture--went-down (connection reason)
  "Clean up after CONNECTION was lost, or could not be made, because of REASON.
If it is still needed, plan the next attempt."
  (when (oref connection gather-timer)
    (contexture--drain connection))
  (let ((process (oref connection process))
        (started (eq (oref connection state) 'ready)))
    (oset connection state 'down)
    (oset connection reason (or (and process (not started)
                                     (contexture--last-words process))
                                reason))
    (oset connection process nil)
    (with-current-buffer (oref connection inbox) ; without the unfinished line
      (delete-region (oref connection whole) (point-max)))
    (oset connection outbox nil)
    (oset connection full nil)
    (oset connection subscribed nil)
    (when process (contexture--delete-process process))
    (dolist (call (contexture--unanswered-calls connection))
      (when (contexture--call-own call)
        (contexture--forget-call connection call)))
    (when-let* ((oldest (and started
                             (car (contexture--unanswered-calls connection)))))
      (cl-incf (contexture--call-deaths oldest)))
    (unless (oref connection useful) (cl-incf (oref connection failures)))
    (oset connection useful nil)
    ;; A connection that is made again at once was hardly lost.
    (unless (and started (contexture--needed-p connection))
      (contexture--later #'run-hooks 'contexture-disconnected-hook))
    (when (contexture--needed-p connection)
      (contexture--tell-down connection (if started 'lost 'failed))
      (oset connection retry-timer
            (run-at-time (contexture--retry-delay (oref connection failures)) nil
                         #'contexture--start connection)))))

(defun contexture--needed-p (connection)
  "Return non-nil if CONNECTION, when lost, must be made again at once.
Otherwise the next call makes it again."
  (or contexture-notification-functions
      (> (hash-table-count (oref connection unanswered)) 0)))

(defun contexture--retry-delay (failures)
  "Return the number of seconds to wait after FAILURES failures in a row."
  (min contexture-reconnect-max-delay
       (* contexture-reconnect-delay (expt 2.0 (max 0 (min (1- failures) 20))))))

(defun contexture--tell-down (connection kind)
  "Tell the user that calls wait because CONNECTION is down.
KIND is `lost' or `failed'; do not tell the same twice."
  (let ((waiting (hash-table-count (oref connection unanswered))))
    (unless (or (eq (oref connection told) kind) (= waiting 0))
      (oset connection told kind)
      (contexture--message "Contexture: %s (%s); %s kept until it is back"
                           (if (eq kind 'lost) "the server went away"
                             "cannot reach the server")
                           (oref connection reason)
                           (contexture--count waiting "call")))))

;;;; Writing, which never waits

(cl-defmethod jsonrpc-connection-send ((connection contexture-connection)
                                       &rest args
                                       &key id method &allow-other-keys)
  "Send the message ARGS, a plist with an ID, a METHOD or both, on CONNECTION.
A request is kept until its answer arrives.  A notification is dropped if
CONNECTION is not ready."
  (let* ((encoded (contexture--encode (contexture--wire-message args)))
         (line (car encoded)))
    (when (> contexture-events-buffer-size 0)
      (with-current-buffer (jsonrpc-events-buffer connection)
        (let ((inhibit-read-only t))
          (goto-char (point-max))
          (insert "[client] " (contexture--redact line)))))
    (unless (= (cdr encoded) 0)
      (contexture--message "Contexture: %s" (contexture--replaced-text (cdr encoded))))
    (if (and id method)
        (contexture--register
         connection (contexture--make-call
                     :id id :method (format "%s" method) :line line
                     :own contexture--own-call))
      (when (eq (oref connection state) 'ready)
        (contexture--write connection nil line)))
    ;; Last, since a first call makes the connection send its own.
    (setq contexture--last-replaced (cdr encoded))))

(defun contexture--wire-message (args)
  "Return ARGS, a message as jsonrpc.el makes it, in the form to send."
  (cl-loop for (key value) on args by #'cddr
           unless (and (null value) (memq key '(:id :params :error)))
           nconc (list key (if (eq key :method) (format "%s" value) value))))

(defun contexture--register (connection call)
  "Keep CALL until its answer arrives on CONNECTION, and send it when possible.
Signal an error if too much waits for answers already."
  (when (and (not (contexture--call-own call)) ; calls wait for the greeting
             (> (+ (oref connection unanswered-size)
                   (length (contexture--call-line call)))
                contexture-queue-limit))
    (signal 'contexture-error
            (list "the server is not keeping up, so the call was not made; \
try again later (see `contexture-queue-limit')")))
  (puthash (contexture--call-id call) call (oref connection unanswered))
  (cl-incf (oref connection unanswered-size)
           (length (contexture--call-line call)))
  (pcase (oref connection state)
    ('ready (contexture--send-call connection call))
    ('starting (when (contexture--call-own call)
                 (contexture--send-call connection call)))
    ('down (unless (oref connection retry-timer)
             (contexture--start connection))))
  ;; Last, since starting makes a call of its own.
  (oset connection last-id (contexture--call-id call)))

(defun contexture--send-call (connection call)
  "Write CALL's line to CONNECTION's process."
  (contexture--write connection (contexture--call-id call)
                     (contexture--call-line call)))

(defun contexture--write (connection id line)
  "Put LINE at the end of CONNECTION's queue, and write what can be written.
ID is the id of the call that LINE makes, or nil."
  (when contexture--wire-functions
    (run-hook-with-args 'contexture--wire-functions 'sent (contexture--redact line)))
  (let ((entry (list (cons id line))))
    (oset connection outbox (nconc (oref connection outbox) entry)))
  (contexture--pump connection))

(defun contexture--pump (connection)
  "Write as much of CONNECTION's queue to its process as the pipe takes.
Try again later if anything is left."
  (when-let* ((timer (oref connection write-timer)))
    (cancel-timer timer)
    (oset connection write-timer nil))
  (let ((process (oref connection process))
        (inhibit-quit t)
        (more t))
    (when process
      (while (and more (or (oref connection full) (oref connection outbox)))
        (setq more (contexture--pump-once connection process)))
      (if more
          (oset connection attempts 0)
        (oset connection write-timer
              ;; A server that reads makes room within a fraction of a millisecond;
              ;; one that makes none in fifty milliseconds is stopped or busy.
              (run-at-time (let ((attempts (cl-incf (oref connection attempts))))
                             (cond ((< attempts 10) 0.0001)
                                   ((< attempts 60) 0.001)
                                   (t 0.1)))
                           nil #'contexture--pump connection))))))

(defun contexture--pump-once (connection process)
  "Write the next line of CONNECTION to PROCESS, or the rest of the last one.
Return non-nil if all of it was written, so that there may be room for more."
  (condition-case nil
      (when (contexture--reachable-p process)
        (let ((text (if (oref connection full) ""
                      (cdr (pop (oref connection outbox))))))
          (not (oset connection full (contexture--write-now process text)))))
    (error nil)))          ; the process is gone: its sentinel cleans up

(defun contexture--write-now (process text)
  "Write TEXT to PROCESS; return t if some of it did not fit into the pipe.
The rest stays in Emacs's queue for PROCESS, and the next send resumes
it, even a send of the empty string."
  (catch 'contexture--full
    ;; The only timer that may run in the sleep is the one that ends it,
    ;; so that the throw unwinds nobody else's work.
    (let ((timer-list nil) (timer-idle-list nil))
      (run-at-time 0 nil #'throw 'contexture--full t)
      (process-send-string process text))
    nil))

;;;; Reading

;; A model's answer may come in thousands of pieces a second, each a line.
;; They stay in the inbox for a moment; those that follow each other are
;; then joined there, without making anything that is garbage afterwards,
;; and handled as one.

(defconst contexture--gather-seconds 0.03
  "Number of seconds for which to gather pieces of an answer.")

(defvar contexture--longest-line 268435456
  "Maximum number of characters of a line from a server.
A server that sends a longer one is left, since Emacs would grow without end.")

(defconst contexture--piece
  "(:method \"progress\" :params (:id [0-9]+ :kind :\\(?:text\\|reasoning\\) :text \""
  "Regexp for the beginning, before the text, of a line with a piece of an answer.")

(defun contexture--filter (process chunk)
  "Collect CHUNK from PROCESS and handle the lines that it completes.
If they are all pieces of an answer, handle them a moment later."
  (when-let* ((connection (process-get process 'contexture-connection)))
    (when (eq process (oref connection process))
      (let ((from (oref connection whole)))
        (contexture--collect connection chunk)
        (cond ((= from (oref connection whole))) ; no line is complete
              ((not (contexture--pieces-p connection from))
               (contexture--drain connection))
              ((null (oref connection gather-timer))
               (oset connection gather-timer
                     (run-at-time contexture--gather-seconds nil
                                  #'contexture--drain connection))))))))

(defun contexture--collect (connection chunk)
  "Add CHUNK to CONNECTION's inbox, and note where whole lines end.
Look at each character once, however long its line becomes."
  (oset connection silent nil)
  (with-current-buffer (oref connection inbox)
    (let ((from (goto-char (point-max))))
      (insert chunk)
      (when (search-backward "\n" from t)
        (oset connection whole (1+ (point)))))
    (when (> (- (point-max) (oref connection whole)) contexture--longest-line)
      (contexture--went-down
       connection (format "it sent a line of more than %s characters"
                          contexture--longest-line)))))

(defun contexture--pieces-p (connection from)
  "Return non-nil if all whole lines after FROM are pieces of an answer.
FROM is a position in CONNECTION's inbox."
  (with-current-buffer (oref connection inbox)
    (goto-char from)
    (let ((whole (oref connection whole)))
      (while (and (< (point) whole) (looking-at contexture--piece))
        (forward-line))
      (= (point) whole))))

(defun contexture--drain (connection)
  "Handle the whole lines in CONNECTION's inbox.
An answer to `jsonrpc-request' leaves this function by a throw; the lines
after it are then handled as soon as Emacs waits for input."
  (when-let* ((timer (oref connection gather-timer)))
    (cancel-timer timer)
    (oset connection gather-timer nil))
  (let (line)
    (unwind-protect
        (while (setq line (contexture--take-line connection))
          (condition-case problem
              (contexture--receive connection line)
            (contexture-unreadable (contexture--refuse-line connection line problem))
            (error (contexture--complain problem))))
      (when line
        (contexture--later #'contexture--drain connection)))))

(defun contexture--take-line (connection)
  "Return the next whole line of CONNECTION's inbox, or nil; it counts as handled.
Consecutive pieces of one answer are joined to one line."
  (contexture--with-live-buffer (oref connection inbox)
    (let ((from (goto-char (oref connection handled))))
      (if (= from (oref connection whole))
          (progn (delete-region (point-min) from)
                 (oset connection handled (point-min))
                 (oset connection whole (point-min))
                 nil)
        (unless (contexture--join-pieces connection)
          (run-hook-with-args 'contexture--wire-functions 'received
                              (buffer-substring from (line-end-position))))
        (goto-char from)
        (forward-line)
        (oset connection handled (point))
        (buffer-substring from (1- (point)))))))

(defun contexture--join-pieces (connection)
  "Join the line at point with the lines after it that are pieces of one answer.
The current buffer is CONNECTION's inbox.  Return nil, and do nothing, if the
line is not a piece of an answer."
  (when (looking-at contexture--piece)
    (let* ((start (match-string 0))
           (between (concat "\"))\n" start))
           (length (length between))
           (whole (oref connection whole))
           more)
      (goto-char (match-end 0))
      (while (let ((from (point)))
               ;; To the end of the text, which is a string.
               (while (progn (skip-chars-forward "^\"\\\\\n")
                             (eq (char-after) ?\\))
                 (forward-char 2))
               (when contexture--wire-functions
                 (run-hook-with-args
                  'contexture--wire-functions 'received
                  (concat start (buffer-substring from (line-end-position)))))
               (setq more (search-forward between (min whole (+ (point) length)) t)))
        (delete-region (- more length) more)
        (setq whole (- whole length)))
      (oset connection whole whole))))

(defun contexture--receive (connection line)
  "Handle LINE from CONNECTION's server.
Answers to calls that nobody waits for are dropped."
  (let* ((message (contexture--decode line))
         (id (plist-get message :id))
         (method (plist-get message :method))
         (call (and id (not method) (gethash id (oref connection unanswered)))))
    (cond (method
           (jsonrpc-connection-receive
            connection
            (nconc (and id (list :id id))
                   (list :method (string-trim-left (format "%s" method) ":")
                         :params (plist-get message :params)))))
          (call
           (contexture--forget-call connection call)
           (unless (contexture--call-own call)
             (oset connection useful t)
             (oset connection failures 0))
           (jsonrpc-connection-receive
            connection (if-let* ((failure (plist-get message :error)))
                           (list :id id :error failure)
                         (list :id id :result (plist-get message :result)))))
          ((plist-get message :error)
           (unless id
             (contexture--message "Contexture: the server refused a message: %s"
                      (plist-get (plist-get message :error) :message)))))))

(defun contexture--refuse-line (connection line problem)
  "End the call that LINE from CONNECTION's server answers, with PROBLEM.
PROBLEM says why LINE cannot be read.  If it answers no call, show PROBLEM."
  (let ((id (and (string-match "\\`[ \t]*(:id \\([0-9]+\\)[ )]" line)
                 (string-to-number (match-string 1 line)))))
    (if (and id (gethash id (oref connection unanswered)))
        (contexture--settle
         connection id
         (list :code -32700
               :message (format "the answer of the server cannot be read: %s"
                                (contexture--problem-text problem))))
      (contexture--complain problem))))

(defun contexture--complain (problem)
  "Show a message about PROBLEM, an error caught in a filter or a sentinel.
An error that escapes a filter would end a batch Emacs."
  (contexture--message "Contexture: %s" (contexture--problem-text problem)))

(defun contexture--queue-news (connection method params)
  "Queue the notification METHOD with PARAMS from CONNECTION.
It is handled outside of the process filter."
  (unless (oref connection news)
    (contexture--later #'contexture--hand-on-news connection))
  (push (list method params) (oref connection news)))

(defun contexture--hand-on-news (connection)
  "Run `contexture-notification-functions' for queued notifications.
They are those of CONNECTION."
  (let ((news (nreverse (oref connection news))))
    (oset connection news nil)
    (dolist (entry news)
      (with-demoted-errors "Contexture: %S"
        (when contexture--live-watching
          (apply #'contexture-live--changed entry))
        (apply #'run-hook-with-args 'contexture-notification-functions entry)))))

(defun contexture--forget-call (connection call)
  "Remove CALL from CONNECTION's unanswered calls."
  (remhash (contexture--call-id call) (oref connection unanswered))
  (cl-decf (oref connection unanswered-size)
           (length (contexture--call-line call))))

(defun contexture--settle (connection id failure)
  "End CONNECTION's unanswered call ID with the error FAILURE, a plist.
Do nothing if there is no such call."
  (when-let* ((call (gethash id (oref connection unanswered))))
    (contexture--forget-call connection call)
    (oset connection outbox (cl-delete id (oref connection outbox) :key #'car))
    (jsonrpc-connection-receive connection (list :id id :error failure))))

;;;; Ending

(cl-defmethod jsonrpc-shutdown ((connection contexture-connection))
  "End CONNECTION for good, with its process and timers; its calls fail."
  (let ((process (oref connection process)))
    (oset connection state 'closed)
    (oset connection process nil)
    (dolist (timer (list (oref connection retry-timer) (oref connection write-timer)
                         (oref connection gather-timer)))
      (when timer (cancel-timer timer)))
    (kill-buffer (oref connection inbox))
    (dolist (call (contexture--unanswered-calls connection))
      (contexture--settle connection (contexture--call-id call)
                          '(:code -32800 :message "disconnected")))
    (when process (contexture--end-process process))))

(defun contexture--end-process (process)
  "End PROCESS by closing its input, and by force soon after.
Everything the server has acknowledged is saved, so force does no harm."
  (set-process-sentinel process #'ignore)
  (condition-case nil
      (when (eq (process-status process) 'run)
        (process-send-eof process)
        (accept-process-output process 0.05))
    (error nil))
  (contexture--delete-process process))

;;; One call on a connection

;; Making a call, waiting for its answer, cancelling it, and joining another
;; server.

;;;; A call

(defun contexture--call (connection method params success failure)
  "Call METHOD with PARAMS on CONNECTION and return the call's id.
SUCCESS is called with the result or FAILURE with the error, both from the
process filter.  If METHOD shows or sends items, first tell the server what
changed in their buffers."
  (when (and (contexture--follows-buffers-p)
             (memq method contexture--showing-methods)
             (eq connection contexture--connection))
    (contexture-live--push))
  (jsonrpc-async-request
   connection method params
   :timeout nil :success-fn success :error-fn failure)
  (oref connection last-id))

(defconst contexture--short-patience 0.5
  "Maximum number of seconds to wait for a server that is silent.")

(defun contexture--wait (connection timeout done)
  "Wait until DONE returns non-nil, at most TIMEOUT seconds.
Signal `contexture-error' if it does not in that time.  Output of
CONNECTION's process ends the wait at once if it makes DONE return non-nil.
After a moment, a key ends it, too, and counts as typed.
After one wait in vain, the next are short until the server says something."
  (let* ((patience (+ (float-time) contexture--short-patience))
         (timeout (if (oref connection silent) (min timeout contexture--short-patience) timeout))
         (end (+ (float-time) timeout))
         (read-process-output-max (max read-process-output-max 1048576)))
    (with-local-quit
      (while (not (funcall done))
        (let ((process (oref connection process))
              (left (- end (float-time))))
          (when (<= left 0)
            (when (>= timeout contexture-request-timeout) (oset connection silent t))
            (signal 'contexture-error
                    (list (contexture--timeout-text connection timeout))))
          (when (> (float-time) patience)
            (when (input-pending-p)
              (signal 'contexture-error
                      (list "the server has not answered yet, and a key ended the wait")))
            (contexture--tell-still-waiting))
          (accept-process-output
           (and process (memq (process-status process) '(run open)) process)
           (min left 0.05)))))
    (contexture--tell-no-longer)))

(defun contexture--tell-still-waiting ()
  "Say that Emacs waits for the server, unless it says so."
  (unless (or noninteractive (equal (current-message) contexture--waiting))
    (message "%s" contexture--waiting)))

(defun contexture--timeout-text (connection timeout &optional option)
  "Return the message that no answer came on CONNECTION within TIMEOUT seconds.
OPTION is the user option that sets TIMEOUT, by default
`contexture-request-timeout'."
  (if (jsonrpc-running-p connection)
      (format "no answer within %s s (see `%s')" timeout
              (or option 'contexture-request-timeout))
    (contexture--format "cannot reach the server: %s"
                        (or (oref connection reason)
                            (format "no answer within %s s" timeout)))))

(defun contexture--cancel (connection id)
  "End CONNECTION's call ID as cancelled, and ask the server to stop it."
  (let ((waiting (assq id (oref connection outbox))))
    (contexture--settle connection id '(:code -32800 :message "cancelled"))
    (when (and (jsonrpc-running-p connection) (not waiting))
      (jsonrpc-notify connection 'cancel (list :id id)))))

;;;; Joining a server

;;;###autoload
(defun contexture-connect (address)
  "Join the server at ADDRESS instead of starting one.
ADDRESS is the path of a Unix socket, or HOST:PORT."
  (interactive
   (let ((default (contexture--running-socket)))
     (contexture--confirm-leaving)
     (list (read-string (format-prompt "Server (socket path or HOST:PORT)" default)
                        nil 'contexture-connect-history default))))
  (let ((connection (contexture--new-connection
                     (contexture--parse-address address))))
    (contexture-disconnect)
    (setq contexture--connection connection)
    (contexture--start connection)
    (condition-case problem
        (contexture--wait connection contexture-request-timeout
                          (lambda () (memq (oref connection state) '(ready down))))
      (contexture-error (oset connection reason (cadr problem))))
    (unless (jsonrpc-running-p connection)
      (contexture-disconnect)
      (contexture--user-error "Cannot reach %s: %s" address (oref connection reason)))
    (contexture--message "Connected to %s (version %s)" address
             (plist-get (oref connection info) :version))))

(defvar contexture-connect-history nil
  "Minibuffer history of addresses of servers.")

(defun contexture--running-socket ()
  "Return the socket of the server that uses the default state folder, or nil."
  (cdr (contexture--server-note (contexture--usual-state-folder))))

(defun contexture--usual-state-folder ()
  "Return the folder in which a server keeps its state by default."
  (expand-file-name "contexture" (or (getenv "XDG_STATE_HOME") "~/.local/state")))

(defun contexture--server-note (folder)
  "Return (PID . SOCKET) of the server that uses the state FOLDER, or nil.
Both come from the file \"server\" that the server writes into FOLDER.  PID
is nil if the file does not tell it; SOCKET is nil if the server listens on
none.  Return nil if there is no such file."
  (let ((note (expand-file-name "server" folder)))
    (when (file-readable-p note)
      (with-temp-buffer
        (insert-file-contents note)
        (let* ((lines (split-string (buffer-string) "\n"))
               (pid (string-to-number (car lines))))
          (cons (and (> pid 0) pid)
                (unless (member (cadr lines) '(nil "")) (cadr lines))))))))

(defun contexture--parse-address (address)
  "Return the target of a connection to ADDRESS, a socket's path or HOST:PORT."
  (if (string-match "\\`\\[?\\([^][/]+?\\)\\]?:\\([0-9]+\\)\\'" address)
      (list :tcp (match-string 1 address)
            (string-to-number (match-string 2 address)))
    (list :unix (expand-file-name address))))

(defun contexture--confirm-leaving ()
  "Ask the user for confirmation if unanswered calls would be lost.
Signal an error if the user says no."
  (when contexture--connection
    (let ((waiting (hash-table-count (oref contexture--connection unanswered))))
      (unless (or (= waiting 0)
                  (contexture--y-or-n-p (contexture--format "Discard %s that the server has not answered? "
                                    (contexture--count waiting "call"))))
        (user-error "Emacs is still connected to the server")))))

;;; One message, one line

;; The text form of messages: one property list on one line.
;;
;; Three things cannot be sent: text properties are dropped; raw bytes and
;; lone surrogates, which are not Unicode text, become U+FFFD and are
;; counted; and a symbol with a newline in its name is an error, since
;; `prin1' cannot print it on one line.

(define-error 'contexture-error "Contexture")
(define-error 'contexture-unreadable "Not a message" 'contexture-error)

(defconst contexture--no-text
  (format "[%c-%c%c-%c%c-%c]" #xd800 #xdfff #x110000 #x3fff7f #x3fff80 #x3fffff)
  "Regexp for one character that UTF-8 cannot express.
That is a surrogate, a character beyond Unicode, or a raw byte; raw bytes
need their own range in a regexp.")

(defvar contexture--replaced 0
  "Number of characters that the encoding in progress has replaced.")

(defun contexture--redact (line)
  "Return LINE, a printed message, with every API key in it hidden.
The values of a provider's headers are hidden, too."
  (let ((text " \"\\(?:[^\"\\]\\|\\\\.\\)*\""))
    (dolist (name (if (string-search "configure-provider" line) '(":api-key" ":value")
                    '(":api-key")))
      (when (string-search (concat name " \"") line)
        (setq line (replace-regexp-in-string (concat name text)
                                             (concat name " \"(hidden)\"") line t t))))
    line))

(defun contexture--encode (message)
  "Return MESSAGE, a property list, as (LINE . REPLACED).
LINE is the printed message; it ends in a newline and has no other.
REPLACED is the number of characters that are not text and were replaced by
U+FFFD."
  (let* ((contexture--replaced 0)
         (print-escape-newlines t)
         (print-escape-control-characters nil)
         (print-escape-nonascii nil)
         (print-escape-multibyte nil)
         (print-circle nil)
         (print-gensym nil)
         (print-length nil)
         (print-level nil)
         (print-quoted nil)
         (print-integers-as-characters nil)
         (float-output-format nil)
         (line (prin1-to-string message)))
    (unless (contexture--plain-p line)
      (setq line (prin1-to-string (contexture--plain message))))
    (when (string-search "\n" line)
      (signal 'contexture-error
              '("a symbol with a newline in its name cannot be sent")))
    (cons (concat line "\n") contexture--replaced)))

(defconst contexture--deepest 1000
  "Maximum depth of nesting in a message from a server.
Emacs reads nested lists by recursion in C, whose stack is short.")

(defconst contexture--wire-syntax
  (let ((table (make-char-table 'syntax-table (string-to-syntax "_"))))
    (pcase-dolist (`(,char . ,syntax)
                   '((?\( . "()") (?\) . ")(") (?\[ . "(]") (?\] . ")[")
                     (?\" . "\"") (?\\ . "\\")
                     (?\s . " ") (?\t . " ") (?\n . " ") (?\r . " ")
                     ;; What needs a closer look.
                     (?# . "<") (?? . "<") (?\; . "<")
                     (?\' . "<") (?\` . "<") (?, . "<")))
      (modify-syntax-entry char syntax table))
    table)
  "Syntax table for messages.  Characters that may begin an object are comments.")

(defconst contexture--names '(:filename :buffer :symbol :title :project :language :mode)
  "Keys of metadata whose values are texts.")

(defconst contexture--no-name
  (format "%s \\(?:[^\"n]\\|n[^i]\\|ni[^l]\\)"
          (regexp-opt (mapcar #'symbol-name contexture--names)))
  "Regexp for a message that may have a name that is no text.")

(defconst contexture--maybe-harmful "lambda\\|closure\\|\\\\[abcdelmorsu]\\|[0-9]\\{19\\}"
  "Regexp for a message that may have what `contexture--tame-atoms' replaces.
Within the name of a symbol, each character may follow a backslash.")

(defconst contexture--function-heads '(lambda closure)
  "Symbols at the beginning of a list that make the list a function.")

(defun contexture--decode (line)
  "Return the message in LINE, a string without its newline.
Return nil if LINE is empty or a comment.  Signal `contexture-unreadable'
if it is anything else than a message.  A message has lists, vectors,
symbols, numbers, and strings without text properties, which could run code
when they are displayed.  No list in it is a function."
  (unless (string-match-p "\\`[ \t\r]*\\(?:;\\|\\'\\)" line)
    (let* ((kind (contexture--data-kind line))
           ;; Data may nest too deep for what is done with them.
           (message (and kind (ignore-errors
                                (contexture--tame-data (car (read-from-string line)) kind line)))))
      (unless (and (keywordp (car-safe message))
                   (cl-evenp (or (proper-list-p message) 1)))
        (signal 'contexture-unreadable
                (list (truncate-string-to-width line 80 nil nil "..."))))
      message)))

(defun contexture--tame-data (data kind line)
  "Return DATA, read from LINE, without properties, functions and names of objects.
KIND is as `contexture--data-kind' says."
  (when (eq kind 'propertied)
    (setq data (contexture--plain data)))
  (when (let ((case-fold-search nil)) (string-match-p contexture--maybe-harmful line))
    (contexture--tame-atoms data))
  (when (string-match-p contexture--no-name line)
    (contexture--make-names data))
  data)

(defun contexture--tame-atoms (data)
  "Replace by strings those symbols in DATA that make functions of lists.
Some data are joined to lists that Emacs would call, as completion tables.
Replace numbers of many digits by the largest one, too: to write one with
commas takes Emacs long.  Return DATA."
  (let ((left (list data)))
    (while left
      (let ((data (pop left)))
        (cl-flet ((tamed (it)
                    (cond ((memq it contexture--function-heads) (symbol-name it))
                          ((bignump it) (if (> it 0) most-positive-fixnum most-negative-fixnum))
                          (t (when (or (consp it) (vectorp it)) (push it left))
                             it))))
          (if (vectorp data)
              (dotimes (index (length data))
                (aset data index (tamed (aref data index))))
            (while (consp data)
              (setcar data (tamed (car data)))
              (if (or (consp (cdr data)) (null (cdr data))) (setq data (cdr data))
                (setcdr data (tamed (cdr data)))
                (setq data nil))))))))
  data)

(defun contexture--make-names (data &optional depth)
  "Make texts of the names in all metadata of DATA, by side effect.
A client can have given an item any data, and no view is to fail for it.
DEPTH is how deep DATA are in a message; nothing far below has metadata."
  (while (consp data)
    (let ((value (car-safe (cdr data))))
      (if (not (and (eq (car data) :metadata) (consp value) (proper-list-p value)))
          (when (and (consp (car data)) (< (or depth 0) 20))
            (contexture--make-names (car data) (1+ (or depth 0))))
        (cl-loop for rest on value by #'cddr
                 when (and (memq (car rest) contexture--names) (cadr rest)
                           (not (stringp (cadr rest))))
                 do (setcar (cdr rest) (format "%s" (cadr rest))))
        (setq data (cdr data))))
    (setq data (cdr data))))

(defun contexture--data-kind (line)
  "Return `plain' if reading LINE makes only plain data that are not too deep.
Return `propertied' if strings in it may have text properties.  Return nil
if it is too deep, or has other objects: all of them begin with a `#'.
Quotes nest as brackets do, and no message has two in a row."
  (if (and (< (length line) contexture--deepest)
           (not (string-match-p "[#?;]" line)))
      'plain
    (with-temp-buffer
      (insert line)
      (with-syntax-table contexture--wire-syntax
        ;; After an escape such as \^, a quote does not end a string.
        (let ((kind (and (not (contexture--escape-p "\\(\\\\+\\)\\(?:[ACHMSs]-\\|\\^\\|N{\\)" line))
                         'plain))
              (parse-sexp-lookup-properties nil) (state '(0)))
          (goto-char (point-min))
          (while (and kind (not (eobp)))
            (setq state (parse-partial-sexp (point) (point-max) contexture--deepest
                                            nil state t))
            (cond ((>= (car state) contexture--deepest) (setq kind nil))
                  ((nth 4 state)
                   ;; Point is after the character that needs a closer look.
                   (setq kind (pcase (char-before)
                                (?# (and (looking-at-p "(\"") 'propertied))
                                ((or ?\' ?\` ?,)
                                 (and (not (looking-at-p "@?[ \t\r\n]*[\'`,]")) kind))
                                ;; At the end of a symbol, not before a character.
                                (?? (save-excursion
                                      (goto-char (max (point-min) (- (point) 2)))
                                      (and (looking-at-p "[a-zA-Z0-9_-]") kind))))
                         state (copy-sequence state))
                   (setf (nth 4 state) nil (nth 8 state) nil))))
          (and (eql 0 (car state)) (not (nth 3 state)) kind))))))

(defun contexture--plain-p (line)
  "Return non-nil if all strings in LINE, a printed message, are plain text.
Return nil in case of doubt: if LINE has the beginning of a string with
properties, an octal escape, as raw bytes are printed, or a character that
is not text."
  (not (or (string-search "#(\"" line)
           (contexture--escape-p "\\(\\\\+\\)[0-7]" line)
           (and (/= (length line) (string-bytes line))
                ;; Raw bytes can only be in the names of symbols, where they do not
                ;; count.  The regexp is for bytes: Emacs needs some 50 ms to compile
                ;; one for as many characters as those beyond Unicode, and forgets it
                ;; soon.
                (let ((case-fold-search nil)
                      (bytes (encode-coding-string line 'utf-8-emacs-unix t)))
                  (string-match-p "\355[\240-\277]\\|\364[\220-\277]\\|[\365-\370]"
                                  bytes))))))

(defun contexture--escape-p (regexp line)
  "Return non-nil if LINE, a printed message, has an escape that REGEXP finds.
Group 1 of REGEXP has all the backslashes there.  A backslash of a text is
printed as two, so only an odd number of them is an escape."
  (let ((case-fold-search nil) (start 0) found)
    (save-match-data
      (while (and (not found) (string-match regexp line start))
        (setq start (match-end 0)
              found (cl-oddp (- (match-end 1) (match-beginning 1))))))
    found))

(defun contexture--plain (value)
  "Return VALUE with all strings in it replaced by plain text."
  (cond ((stringp value) (contexture--plain-string value))
        ((consp value)
         (let (result)
           (while (consp value)
             (push (contexture--plain (pop value)) result))
           (nconc (nreverse result) (and value (contexture--plain value)))))
        ((vectorp value) (cl-map 'vector #'contexture--plain value))
        (t value)))

(defun contexture--plain-string (string)
  "Return STRING without text properties, and with U+FFFD for what is not text.
Add the number of replaced characters to `contexture--replaced'."
  (let* ((text (if (or (next-property-change 0 string)
                       (and (> (length string) 0) (text-properties-at 0 string)))
                   (substring-no-properties string)
                 string))
         (multibyte (string-to-multibyte text)))
    (if (= (length multibyte) (string-bytes multibyte))
        text                            ; all ASCII: nothing to look for
      (let ((case-fold-search nil))
        (replace-regexp-in-string
         contexture--no-text
         (lambda (_) (cl-incf contexture--replaced) "\ufffd")
         multibyte t t)))))

;;; What the server writes to stderr

;; The log needs its own pipe: by default Emacs would mix it into the pipe
;; of the protocol.  Its last line says why a server did not start.

(defconst contexture--log-buffer "*contexture: server log*"
  "Name of the buffer that shows what the server writes to stderr.")

(defconst contexture--log-size 65536
  "Maximum size of the server's log, in characters.")

(defun contexture--log-pipe ()
  "Return a pipe that collects what the server writes to stderr."
  (make-pipe-process :name "contexture log" :noquery t
                     :buffer (get-buffer-create contexture--log-buffer)
                     :coding 'utf-8-unix
                     :filter #'contexture--log :sentinel #'ignore))

(defun contexture--log (process text)
  "Append TEXT, which PROCESS wrote, to the server's log.
If the log is too long then, delete its older half."
  (contexture--with-live-buffer (process-buffer process)
    (goto-char (point-max))
    (insert (contexture--redact text))
    (when (> (buffer-size) contexture--log-size)
      (delete-region (point-min) (- (point-max) (/ contexture--log-size 2))))))

(defun contexture--last-words (process)
  "Return the last line of the server's log if PROCESS writes to it, or nil."
  (when-let* ((log (process-get process 'contexture-log)))
    ;; The process is dead, but Emacs may not have read all of its output.
    (let ((tries 5))
      (while (and (> tries 0) (accept-process-output log 0.02 nil t))
        (setq tries (1- tries))))
    (with-current-buffer (get-buffer-create contexture--log-buffer)
      (save-excursion
        (goto-char (point-max))
        (skip-chars-backward " \t\n")
        (unless (bobp)
          (buffer-substring-no-properties (line-beginning-position) (point)))))))

(provide 'contexture-rpc)
;;; contexture-rpc.el ends here
