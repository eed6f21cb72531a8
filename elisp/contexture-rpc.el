;;; contexture-rpc.el --- Calls to the Contexture server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The package's interface to the server: `contexture-request-async' in
;; general, `contexture-request' when the user waits for the answer, and
;; `contexture-notify' when there is none.  The first use finds and starts
;; the server; `contexture-connect' joins one.  This file knows nothing
;; about items, buffers and commands, or about the transport of messages.
;;
;; A call may reach the server twice (see contexture-connection.el), so
;; every call that changes something carries a `:request-key', by which the
;; server recognises it and repeats its answer.
;;
;; `contexture-request-batch' makes many calls in one, and
;; `contexture-request-pages' fetches a long list in short answers.

;;; Code:

(require 'cl-lib)
(require 'contexture-base)

;; The first call loads these: jsonrpc.el takes longer than all the rest.
(autoload 'contexture--new-connection "contexture-connection")
(autoload 'contexture--subscribe "contexture-connection")
(autoload 'contexture--call "contexture-call")
(autoload 'contexture--wait "contexture-call")
(autoload 'contexture--cancel "contexture-call")
(autoload 'contexture--confirm-leaving "contexture-call")
(autoload 'contexture-connect "contexture-call" nil t)

;; These are called only on a connection, so after that file is loaded.
(declare-function contexture-live--disconnected "contexture-live-place" ())
(declare-function jsonrpc-notify "jsonrpc" (connection method params))
(declare-function jsonrpc-running-p "jsonrpc" (conn))
(declare-function jsonrpc-shutdown "jsonrpc" (conn &optional cleanup))

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
    (when (featurep 'contexture-live-place)
      (contexture-live--disconnected))
    (run-hooks 'contexture-disconnected-hook)))

(provide 'contexture-rpc)
;;; contexture-rpc.el ends here
