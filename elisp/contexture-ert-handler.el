;;; contexture-ert-handler.el --- Servers written in Lisp  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A server of a test that a function of the test answers for, so that it
;; can say anything, also what no real server would:
;;
;;     (contexture-ert-with-handler
;;         (lambda (method _params)
;;           (pcase method
;;             ('count-items '(result (:count 3)))
;;             ('undo '(error 1 "there is nothing to undo"))
;;             ('ping '((raw "half a li") hang-up))))
;;       (my-command))
;;
;; It serves Contexture's client or, with :framing `jsonrpc', a client of
;; jsonrpc.el, as servers of the Language Server Protocol do.  With :server,
;; a real server answers all other calls.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'contexture-ert-model)
(eval-when-compile (require 'subr-x))

(declare-function contexture-ert--call-with-server "contexture-ert" t)
(declare-function contexture-ert--isolated "contexture-ert" (function))
(declare-function contexture-ert--split-keys "contexture-ert" (body))

(cl-defstruct (contexture-ert--handler (:constructor contexture-ert--make-handler)
                                       (:copier nil))
  "A server of a test.
FUNCTION answers its calls; LISTENER is its process, CLIENT the one of the
last client; PROBLEM is an error of FUNCTION, or nil.  COMMAND starts the
real server, REAL, that answers what FUNCTION does not; or it is nil."
  function framing command listener client real problem (requests 0))

(defvar contexture-ert--handler nil
  "Server of the test that `contexture-ert-with-handler' made, or nil.")

(defmacro contexture-ert-with-handler (function &rest body)
  "Run BODY with a server whose calls FUNCTION answers.
FUNCTION gets a method, a symbol, and its parameters, a property list.
It returns what the server says, one of the following or a list of them:

  (result VALUE)            the result of the call
  (error CODE TEXT [DATA])  or its error
  (progress PLIST)          a notification of its progress
  (notify METHOD PLIST)     any notification
  (request METHOD PLIST)    a request to the client
  (raw TEXT)                TEXT as it stands, such as half a line
  (step NAME)               wait until `contexture-ert-go-on'
  hang-up                   end the connection
  hang                      say nothing more

Nil stands for the error that there is no such method, except that the calls
with which Contexture's client greets a server are answered nevertheless.

BODY may begin with keywords:

  :framing jsonrpc   serve a client of jsonrpc.el that connects to
                     `contexture-ert-port', not Contexture's own
  :server KEYS       what FUNCTION returns nil for is answered by a real
                     server; KEYS, which may be t, are a property list of
                     keywords for `contexture-ert-with-server'

The test fails if FUNCTION fails."
  (declare (indent 1) (debug (form &rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (contexture-ert--split-keys body)))
    `(contexture-ert--call-with-handler ,function (lambda () ,@forms) ,@keys)))

(cl-defun contexture-ert--call-with-handler (answers function &key framing server)
  "Call FUNCTION with a server that ANSWERS.
FRAMING and SERVER are as in `contexture-ert-with-handler'."
  (let ((body (lambda ()
                (let* ((handler (contexture-ert--make-handler
                                 :function answers :framing framing
                                 :command (and server
                                               (contexture--server-command))))
                       (contexture-ert--handler handler)
                       (contexture-ert--steps nil)
                       (contexture-server-command "no server, but a handler"))
                  (setf (contexture-ert--handler-listener handler)
                        (contexture-ert--handler-listen handler))
                  (unless (contexture-ert--handler-framing handler)
                    (setq contexture--connection
                          (contexture--new-connection
                           (list :tcp "127.0.0.1" (contexture-ert-port)))))
                  (prog1 (funcall function)
                    (when (contexture-ert--handler-problem handler)
                      (ert-fail (contexture-ert--handler-problem handler))))))))
    (if server
        (apply #'contexture-ert--call-with-server body (and (consp server) server))
      (contexture-ert--isolated body))))

(defun contexture-ert-port ()
  "Return the port at which the handler of the test listens on 127.0.0.1."
  (process-contact (contexture-ert--handler-listener contexture-ert--handler)
                   :service))

(defun contexture-ert--handler-listen (handler)
  "Have HANDLER listen on a free port; return the process."
  (make-network-process
   :name "contexture-ert-handler" :server t :host "127.0.0.1" :service t
   :family 'ipv4 :coding 'binary :noquery t :sentinel #'ignore
   :filter (lambda (process chunk)
             (setf (contexture-ert--handler-client handler) process)
             (process-put process 'heard (concat (process-get process 'heard) chunk))
             (let (message)
               (while (and (not (process-get process 'hung-up))
                           (setq message (contexture-ert--handler-next handler process)))
                 (contexture-ert--handler-answer handler process message))))))

(defun contexture-ert-handler-says (&rest acts)
  "Have the handler of the test say ACTS to its last client.
ACTS are as in `contexture-ert-with-handler'."
  (contexture-ert-wait-for
      (contexture-ert--handler-client contexture-ert--handler)
    :message "no client has called")
  (contexture-ert--handler-act contexture-ert--handler
                               (contexture-ert--handler-client contexture-ert--handler)
                               nil acts))

;;;; Listening

(defun contexture-ert--handler-next (handler process)
  "Return the next message that PROCESS sent to HANDLER, or nil if none is whole."
  (let ((heard (process-get process 'heard)) (case-fold-search t))
    (if (contexture-ert--handler-framing handler)
        (when (string-match "content-length: *\\([0-9]+\\)[^\0]*?\r\n\r\n" heard)
          (let* ((start (match-end 0))
                 (end (+ start (string-to-number (match-string 1 heard)))))
            (when (<= end (length heard))
              (process-put process 'heard (substring heard end))
              (contexture-ert--handler-noted
               'sent (contexture-ert--read-json (substring heard start end))))))
      (when-let* ((end (string-search "\n" heard)))
        (process-put process 'heard (substring heard (1+ end)))
        (or (contexture-ert--decode
             (decode-coding-string (substring heard 0 end) 'utf-8))
            '(:method nil))))))

(defun contexture-ert--handler-noted (direction message)
  "Return MESSAGE after recording that it went in DIRECTION."
  (contexture-ert--note-line direction (car (contexture--encode message)))
  message)

(defun contexture-ert--handler-answer (handler process message)
  "Have HANDLER answer MESSAGE of PROCESS."
  (when-let* ((method (plist-get message :method)))
    (let ((id (plist-get message :id)) (params (plist-get message :params)))
      (condition-case problem
          (contexture-ert--handler-act
           handler process id
           (or (let ((said (funcall (contexture-ert--handler-function handler)
                                    (if (symbolp method) method (intern method))
                                    params)))
                 (if (and said (or (symbolp said) (symbolp (car said)))
                          (not (memq (car-safe said) '(hang hang-up))))
                     (list said)
                   said))
               (contexture-ert--handler-default handler message)))
        ((error ert-test-failed)
         (setf (contexture-ert--handler-problem handler)
               (list 'handler-failed problem :at method params))
         (when id
           (contexture-ert--handler-act
            handler process id `((error -32603 ,(format "%S" problem))))))))))

(defun contexture-ert--handler-default (handler message)
  "Return the acts that answer MESSAGE where HANDLER's function returned nil.
If HANDLER has a real server, that gets MESSAGE instead."
  (cond ((contexture-ert--handler-command handler)
         (contexture-ert--handler-send (contexture-ert--handler-start handler)
                                       (car (contexture--encode message)))
         '(hang))
        ((plist-get message :id)
         (list (if-let* ((result (contexture-ert--greeting message)))
                   (list 'result result)
                 (list 'error -32601 (format "the handler has no method %s"
                                             (plist-get message :method))))))))

(defun contexture-ert--handler-start (handler)
  "Return the real server behind HANDLER; start it if none runs."
  (or (contexture-ert--handler-real handler)
      (setf (contexture-ert--handler-real handler)
            (make-process
             :name "contexture-ert-server" :connection-type 'pipe
             :command (contexture--unbroken (contexture-ert--handler-command handler))
             :coding 'binary :noquery t :sentinel #'ignore
             :stderr (contexture--log-pipe)
             :filter (lambda (process chunk)
                       (let* ((heard
                               (concat (process-get process 'heard) chunk))
                              (end (string-match "[^\n]*\\'" heard)))
                         (process-put process 'heard (substring heard end))
                         (contexture-ert--handler-send
                          (contexture-ert--handler-client handler)
                          (substring heard 0 end))))))))

;;;; Speaking

(defun contexture-ert--handler-act (handler process id acts)
  "Have HANDLER do ACTS for the call ID of PROCESS, until one has to wait."
  (while acts
    (pcase (pop acts)
      (`(step ,name)
       (let ((rest acts))
         (setq acts nil)
         (contexture-ert--stand-at
          name (lambda () (contexture-ert--handler-act handler process id rest)))))
      ('hang (setq acts nil))
      ('hang-up
       (setq acts nil)
       (process-put process 'hung-up t)
       ;; Ending our half alone keeps the client from writing to nobody,
       ;; which would end a batch Emacs by SIGPIPE.
       (when (process-live-p process) (process-send-eof process)))
      (`(raw ,text)
       (contexture-ert--handler-send process text))
      (act (contexture-ert--handler-tell
            handler process (contexture-ert--handler-message handler id act))))))

(defun contexture-ert--handler-message (handler id act)
  "Return the message by which HANDLER does ACT for the call ID."
  (pcase act
    (`(result ,value) (list :id id :result value))
    (`(error ,code ,text . ,data)
     (list :id id :error `(:code ,code :message ,text ,@(and data (list :data (car data))))))
    (`(progress ,plist)
     (list :method "progress" :params (append (list :id id) plist)))
    (`(notify ,method ,plist)
     (list :method (format "%s" method) :params plist))
    (`(request ,method ,plist)
     (list :id (format "handler-%d" (cl-incf (contexture-ert--handler-requests handler)))
           :method (format "%s" method) :params plist))
    (_ (error "A handler cannot do %S" act))))

(defun contexture-ert--handler-tell (handler process message)
  "Send MESSAGE to PROCESS, in the framing of HANDLER."
  (if (contexture-ert--handler-framing handler)
      (let ((json (encode-coding-string
                   (json-encode (append '(:jsonrpc "2.0") message)) 'utf-8)))
        (contexture-ert--handler-noted 'received message)
        (contexture-ert--handler-send
         process (format "Content-Length: %d\r\n\r\n%s" (length json) json)))
    (contexture-ert--handler-send process (car (contexture--encode message)))))

(defun contexture-ert--handler-send (process text)
  "Send TEXT to PROCESS, unless that has hung up."
  (contexture-ert--send process (if (multibyte-string-p text)
                                         (encode-coding-string text 'utf-8)
                                       text)))

(provide 'contexture-ert-handler)
;;; contexture-ert-handler.el ends here
