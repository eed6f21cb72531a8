;;; jsonrpc-client-tests.el --- Test a client of jsonrpc.el with a server in Lisp  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A sample of a suite for a client of jsonrpc.el, as one of the Language
;; Server Protocol is.  A function of the test answers for the server.

;;; Code:

(require 'llm-ert)
(require 'jsonrpc)

;; The package under test would have this.

(defvar jsonrpc-client-tests--shown nil
  "Messages that the server had the client show, the newest first.")

(defun jsonrpc-client-tests--connect ()
  "Return a client that is connected to the server of the test."
  (make-instance
   'jsonrpc-process-connection :name "client"
   :process (lambda ()
              (make-network-process :name "client" :host "127.0.0.1" :noquery t
                                    :service (llm-ert-port)))
   :request-dispatcher (lambda (_ method _)
                         (and (eq method 'workspace/configuration) ["tabs"]))
   :notification-dispatcher
   (lambda (_ method params)
     (when (eq method 'window/showMessage)
       (push (plist-get params :message) jsonrpc-client-tests--shown)))))

(defmacro jsonrpc-client-tests--with (answers &rest body)
  "Run BODY with `client', whose server ANSWERS, a function."
  (declare (indent 1) (debug t))
  `(let ((jsonrpc-client-tests--shown nil))
     (llm-ert-with-server ,answers
       (let ((client (jsonrpc-client-tests--connect)))
         ,@body))))

(ert-deftest jsonrpc-client-gets-results-and-errors ()
  (jsonrpc-client-tests--with
      (lambda (method params)
        (pcase method
          ('textDocument/hover
           (list 'result (list :contents (plist-get params :word))))
          ('textDocument/rename '(error -32803 "cannot rename"))))
    (should (equal (jsonrpc-request client 'textDocument/hover '(:word "λ"))
                   '(:contents "λ")))
    (should (string-search
             "cannot rename"
             (format "%S" (cdr (should-error
                                (jsonrpc-request client 'textDocument/rename nil)
                                :type 'jsonrpc-error)))))
    (llm-ert-should-called 'textDocument/hover '(:word "λ"))))

(ert-deftest jsonrpc-client-shows-messages-and-answers-requests ()
  (jsonrpc-client-tests--with
      (lambda (method _)
        (and (eq method 'initialized)
             '((notify window/showMessage (:message "ready"))
               (request workspace/configuration (:items [])))))
    (jsonrpc-notify client 'initialized nil)
    (llm-ert-wait-for (equal jsonrpc-client-tests--shown '("ready")))
    (should (equal (plist-get (llm-ert-await '(:result ("tabs")) 'sent) :id)
                   "server-1"))))

(ert-deftest jsonrpc-client-waits-for-a-slow-answer ()
  (jsonrpc-client-tests--with
      (lambda (_ _) '((step slow) (result "late")))
    (let (answer)
      (jsonrpc-async-request client 'shutdown nil
                             :success-fn (lambda (it) (setq answer it)))
      (llm-ert-await-step 'slow)
      (should-not answer)
      (llm-ert-go-on 'slow)
      (llm-ert-wait-for (equal answer "late")))))

(ert-deftest jsonrpc-client-survives-a-server-that-hangs-up ()
  (jsonrpc-client-tests--with
      (lambda (_ _) '((raw "Content-Length: 30\r\n\r\n{\"half") hang-up))
    (should-error (jsonrpc-request client 'shutdown nil :timeout 2))
    (llm-ert-wait-for (not (jsonrpc-running-p client)))))

(provide 'jsonrpc-client-tests)
;;; jsonrpc-client-tests.el ends here
